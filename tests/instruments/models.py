"""Models of the shapes that instruments must cope with."""

import torch
from torch import nn


class Block(nn.Module):
    """A residual block as torchvision writes it: one in-place ReLU, called twice."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.shortcut = nn.Conv2d(inside, outside, 1) if inside != outside else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = x if self.shortcut is None else self.shortcut(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += kept
        return self.relu(out)


class Residual(nn.Module):
    def __init__(self, blocks: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1)
        self.body = nn.Sequential(Block(8, 16), *[Block(16, 16) for _ in range(blocks - 1)])
        self.head = nn.Linear(16, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.stem(image)).mean(dim=(2, 3)))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        samples, length, width = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (p.view(samples, length, self.heads, -1).transpose(1, 2) for p in parts)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(samples, length, width))
        return x + self.mlp(self.norm2(x))


class Language(nn.Module):
    """Takes ids, as a keyword too; the output layer shares the weights of the embedding."""

    def __init__(self, layers: int = 4) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Embedding(12, 16)
        self.layers = nn.ModuleList([Layer(16, 2) for _ in range(layers)])
        self.head = nn.Linear(16, 20, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return {"logits": self.head(x)}


class Tagger(nn.Module):
    """An LSTM, whose output is a tuple in a tuple, and one module at two places."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.again = self.first
        self.memory = nn.LSTM(6, 5, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, (hidden, _) = self.memory(self.again(self.first(x)))
        return states[:, -1] + hidden[-1]
