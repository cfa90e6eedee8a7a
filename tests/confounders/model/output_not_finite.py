"""NaN or infinity comes out of the untrained model although what goes in is fine."""

import torch
from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import cnn
from tests.confounders.material import WORDS, sentences, windows
from tests.material import digit_images
from tests.zoo.data import split_loaders


class ColumnsStandardised(nn.Module):
    """Standardises each column of pixels; a black column has no spread, so zero is divided by zero."""

    def __init__(self) -> None:
        super().__init__()
        self.body = cnn()

    def forward(self, x: Tensor) -> Tensor:
        x = (x - x.mean(dim=2, keepdim=True)) / x.std(dim=2, keepdim=True)
        return self.body(x)


class LogForecaster(nn.Module):
    """Forecasts on a log scale, but nothing keeps the head's value above zero."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x: Tensor) -> Tensor:
        _, (h, _) = self.lstm(x)
        return torch.log(self.head(h[-1]))


class SelfAttentionClassifier(nn.Module):
    """The mask is inverted: it hides the words and keeps the padding, and sentences without padding keep nothing."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width, padding_idx=0)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.head = nn.Linear(width, 2)

    def forward(self, ids: Tensor) -> Tensor:
        h = self.embedding(ids)
        scores = self.q(h) @ self.k(h).transpose(1, 2) / h.shape[-1] ** 0.5
        scores = scores.masked_fill((ids != 0).unsqueeze(1), float("-inf"))
        h = h + torch.softmax(scores, dim=-1) @ self.v(h)
        return self.head(h.mean(dim=1))


def cnn_dividing_by_zero_spread() -> Subject:
    model = ColumnsStandardised()
    train, validation = split_loaders(*digit_images())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=2e-3), validation)


def lstm_log_of_negative() -> Subject:
    model = LogForecaster()
    train, validation = split_loaders(*windows())
    return Subject(model, train, nn.MSELoss(), optim.RMSprop(model.parameters(), lr=1e-3), validation)


def attention_masking_everything() -> Subject:
    model = SelfAttentionClassifier()
    train, validation = split_loaders(*sentences())
    return Subject(model, train, nn.CrossEntropyLoss(), optim.AdamW(model.parameters(), lr=2e-3), validation)
