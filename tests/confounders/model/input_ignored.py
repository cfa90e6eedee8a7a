"""The output is a function of the parameters alone; the input leaves no trace in it."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import cnn
from tests.confounders.material import windows
from tests.material import digit_images, digits
from tests.zoo.data import split_loaders


class FirstTokenClassifier(nn.Module):
    """A class token at the front under a causal mask: it can attend to nothing but itself."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, rows: Tensor) -> Tensor:
        tokens = torch.cat([self.token.expand(len(rows), -1, -1), self.embed(rows)], dim=1)
        length = tokens.shape[1]
        mask = torch.ones(length, length).triu(1).bool()
        return self.head(self.encoder(tokens, mask=mask)[:, 0])


class NormalisedForecaster(nn.Module):
    """A layer norm over the one feature there is: x minus itself."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(1)
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x: Tensor) -> Tensor:
        _, h = self.gru(self.norm(x))
        return self.head(h[-1])


class Occluded(nn.Module):
    """Keeps what the occlusion mask hides; as nothing is hidden, nothing is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("visible", torch.ones(1, 1, 8, 8))
        self.body = cnn()

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x.masked_fill(self.visible > 0, 0.0))


def transformer_with_a_lonely_class_token() -> Subject:
    model = FirstTokenClassifier()
    x, y = digits()
    train, validation = split_loaders(x.reshape(-1, 8, 8), y)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=1e-3), validation)


def gru_after_a_norm_over_one_feature() -> Subject:
    model = NormalisedForecaster()
    train, validation = split_loaders(*windows())
    return Subject(model, train, nn.MSELoss(), optim.Adam(model.parameters(), lr=3e-3), validation)


def cnn_with_an_inverted_mask() -> Subject:
    model = Occluded()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.05, momentum=0.9), validation)
