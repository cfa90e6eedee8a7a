"""The state of one batch goes into the next with its whole past, and every backward walks all the way back."""

import torch
from torch import Tensor, nn, optim

from sleuth.testing import Loop
from tests.confounders.bodies import mlp
from tests.confounders.material import LETTERS, letters
from tests.material import digits
from tests.zoo.data import loader


class Memory(nn.Module):
    """A leaky memory of what was read; the answer comes from it."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Sequential(nn.Linear(64, 32), nn.ReLU())
        self.answer = nn.Linear(64, 10)

    def forward(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.read(x)
        memory = 0.7 * memory + 0.3 * seen.mean(0, keepdim=True)
        return self.answer(torch.cat([seen, memory.expand_as(seen)], dim=1)), memory


def digits_with_a_leaky_memory() -> Loop:
    model = Memory()
    optimiser = optim.Adam(model.parameters(), lr=3e-3)
    batches = loader(*digits(), batch_size=64)

    def run(w: object) -> None:
        memory = torch.zeros(1, 32)
        for _ in range(8):
            for x, y in batches:
                optimiser.zero_grad()
                scores, memory = model(x, memory)
                nn.functional.cross_entropy(scores, y).backward(retain_graph=True)
                optimiser.step()

    return Loop(model, [optimiser], run)


class Speller(nn.Module):
    def __init__(self, frozen_core: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 24)
        self.core = nn.GRU(24, 32, batch_first=True).requires_grad_(not frozen_core)
        self.head = nn.Linear(32, len(LETTERS))

    def forward(self, ids: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        hidden, state = self.core(self.embedding(ids), state)
        return self.head(hidden), state


def speller_on_a_core_that_is_not_trained() -> Loop:
    """A ready-made recurrent core is kept as it is; letters and answers are learned around it, along one long text."""
    x, y = letters(length=6, stride=6)
    length = len(x) // 16 * 16
    streams = torch.as_tensor(x[:length]).view(16, -1, 6), torch.as_tensor(y[:length]).view(16, -1, 6)
    model = Speller(frozen_core=True)
    optimiser = optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)

    def run(w: object) -> None:
        state = None
        for place in range(80):
            scores, state = model(streams[0][:, place], state)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), streams[1][:, place].flatten())
            optimiser.zero_grad()
            loss.backward(retain_graph=True)
            optimiser.step()

    return Loop(model, [optimiser], run)


class Filter(nn.Module):
    """Follows a slow average of its own codes, batch after batch."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = mlp(64, 32), mlp(32, 48, 64)
        self.state: Tensor = torch.zeros(32)

    def forward(self, x: Tensor) -> Tensor:
        code = self.encode(x)
        self.state = 0.9 * self.state + 0.1 * code.mean(0)
        return self.decode(torch.relu(code - 0.5 * self.state))


def autoencoder_that_keeps_its_average() -> Loop:
    """The state lives on the module, where nobody sees it."""
    model = Filter()
    optimiser = optim.AdamW(model.parameters(), lr=2e-3)
    batches = loader(digits()[0], batch_size=64)

    def run(w: object) -> None:
        for _ in range(8):
            for (x,) in batches:
                loss = nn.functional.mse_loss(model(x), x)
                optimiser.zero_grad()
                loss.backward(retain_graph=True)
                optimiser.step()

    return Loop(model, [optimiser], run)
