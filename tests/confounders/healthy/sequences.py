"""Texts and signals read in order, with a state that is carried from one piece to the next."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import per_position
from tests.confounders.material import LETTERS, TEXT, continued
from tests.zoo.data import loader


class Stream(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 24)
        self.lstm = nn.LSTM(24, width, batch_first=True)
        self.head = nn.Linear(width, len(LETTERS))

    def forward(self, ids: Tensor, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        hidden, state = self.lstm(self.embedding(ids), state)
        return self.head(hidden), state


def text_in_pieces_with_a_detached_state() -> Loop:
    """Sixteen readers go through the text side by side; nothing is shuffled, because the state goes on."""
    ids = torch.tensor([LETTERS.index(c) for c in TEXT])
    ids = ids[: len(ids) // 16 * 16].view(16, -1)
    model = Stream()
    optimiser = optim.Adam(model.parameters(), lr=1e-2)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=14)

    def run(w: object) -> None:
        model.train()
        for _ in range(14):
            state = None
            for start in range(0, ids.shape[1] - 21, 20):
                piece = ids[:, start : start + 21]
                scores, state = model(piece[:, :-1], state)
                state = tuple(part.detach() for part in state)
                optimiser.zero_grad()
                per_position(scores, piece[:, 1:]).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
            schedule.step()

    return Loop(model, [optimiser], run)


class Causal(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.enter, self.leave = nn.Conv1d(1, width, 5), nn.Conv1d(width, 1, 5)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.enter(nn.functional.pad(x.transpose(1, 2), (4, 0))))
        return self.leave(nn.functional.pad(hidden, (4, 0))).transpose(1, 2)


def forecast_scored_after_a_few_steps() -> Loop:
    """The first places cannot be known and are left out of the loss."""
    model = Causal()
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    batches = loader(*continued())

    def run(w: object) -> None:
        model.train()
        for _ in range(24):
            for x, y in batches:
                optimiser.zero_grad()
                nn.functional.smooth_l1_loss(model(x)[:, 6:], y[:, 6:]).backward()
                optimiser.step()

    return Loop(model, [optimiser], run)
