"""A reshape or an axis mixes the samples of a batch: one sample's answer depends on its neighbours."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.material import waves
from tests.material import digit_images, digits
from tests.zoo.data import split_loaders


class RowReader(nn.Module):
    """`batch_first` was forgotten: the LSTM walks from sample to sample."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 48)
        self.head = nn.Linear(48, 10)

    def forward(self, rows: Tensor) -> Tensor:
        outputs, _ = self.lstm(rows)
        return self.head(outputs[:, -1])


class ChannelsFirst(nn.Module):
    """The channels are moved to the front, then the rows of the batch are cut from whatever lies in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        h = nn.functional.max_pool2d(h, 2).permute(1, 0, 2, 3)
        return self.fc(h.reshape(x.shape[0], -1))


class PatchAttention(nn.Module):
    """Attention wants (t, n, width); reshape gives that shape, but only a transpose would keep the samples apart."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Linear(4, width)
        self.attention = nn.MultiheadAttention(width, 4)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        n, t, _ = x.shape
        h = self.embed(x)
        turned = h.reshape(t, n, -1)
        attended, _ = self.attention(turned, turned, turned)
        return self.head(self.norm(h + attended.reshape(n, t, -1)).mean(1))


def lstm_without_batch_first() -> Subject:
    model = RowReader()
    x, y = digits()
    train, validation = split_loaders(x.reshape(-1, 8, 8), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def cnn_flattened_across_samples() -> Subject:
    model = ChannelsFirst()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)


def attention_after_a_reshape() -> Subject:
    model = PatchAttention()
    x, y = waves()
    train, validation = split_loaders(x.reshape(-1, 6, 4), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)
