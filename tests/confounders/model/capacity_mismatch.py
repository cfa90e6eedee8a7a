"""The number of parameters has no proportion to the amount of data."""

from torch import Tensor, nn, optim

from sleuth import Subject
from tests.confounders.bodies import Recurrent, mlp, per_position
from tests.confounders.material import LETTERS, cut, letters, waves
from tests.material import wine
from tests.zoo.data import loader, split_loaders


class OneUnit(nn.Module):
    """Seventy-six letters through a single number."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 1)
        self.gru = nn.GRU(1, 1, batch_first=True)
        self.head = nn.Linear(1, len(LETTERS))

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.gru(self.embedding(ids))[0])


def wide_mlp_on_thirty_wines() -> Subject:
    model = mlp(13, 256, 256, 3)
    (x, y), (held_x, held_y) = cut(*wine())
    train, validation = loader(x[:30], y[:30], batch_size=10), loader(held_x, held_y, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-3), validation)


def large_lstm_on_thirty_waves() -> Subject:
    model = Recurrent(1, 3, width=140)
    (x, y), (held_x, held_y) = cut(*waves())
    train, validation = loader(x[:30], y[:30], batch_size=10), loader(held_x, held_y, batch_size=64, shuffle=False)
    return Subject(model, train, nn.CrossEntropyLoss(), optim.RMSprop(model.parameters(), lr=5e-4), validation)


def letters_through_one_unit() -> Subject:
    model = OneUnit()
    train, validation = split_loaders(*letters(stride=3))
    return Subject(model, train, per_position, optim.AdamW(model.parameters(), lr=1e-2), validation)
