"""Loops as people write them. Each yields after every step, so that a watch can be opened around it and left at any moment."""

import dataclasses
from collections.abc import Callable, Iterator

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

X = torch.randn(64, 12, generator=torch.Generator().manual_seed(1))
Y = X[:, :4].argmax(1)


@dataclasses.dataclass
class Training:
    model: nn.Module
    optimisers: list[torch.optim.Optimizer]
    loop: Callable[[], Iterator[None]]
    closing: Callable[[], None] = lambda: None

    def state(self) -> list[torch.Tensor]:
        """Everything that training changes: weights, buffers, optimiser state, random state."""
        tensors = [*self.model.state_dict().values()]
        for optimiser in self.optimisers:
            for state in optimiser.state.values():
                tensors += [value for value in state.values() if isinstance(value, torch.Tensor)]
        return [t.detach().clone() for t in tensors] + [torch.get_rng_state()]


SCENARIOS: dict[str, Callable[[], Training]] = {}


def scenario(make: Callable[[], Training]) -> Callable[[], Training]:
    SCENARIOS[make.__name__] = make
    return make


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))


def plainly(model: nn.Module, optimiser: torch.optim.Optimizer, forward: Callable[[torch.Tensor], torch.Tensor] | None = None):
    def loop() -> Iterator[None]:
        while True:
            optimiser.zero_grad()
            functional.cross_entropy((forward or model)(X), Y).backward()
            optimiser.step()
            yield

    return loop


@scenario
def adam() -> Training:
    model = mlp()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    return Training(model, [optimiser], plainly(model, optimiser))


@scenario
def sgd_with_momentum() -> Training:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 1e-2, momentum=0.9)
    return Training(model, [optimiser], plainly(model, optimiser))


@scenario
def lbfgs_closure() -> Training:
    model = nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 4))
    optimiser = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(X), Y)
        loss.backward()
        return loss

    def loop() -> Iterator[None]:
        while True:
            optimiser.step(closure)
            yield

    return Training(model, [optimiser], loop)


@scenario
def gan() -> Training:
    model = nn.ModuleDict({"make": nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 12)), "judge": nn.Linear(12, 1)})
    maker = torch.optim.Adam(model["make"].parameters(), 1e-3)
    judge = torch.optim.Adam(model["judge"].parameters(), 1e-3)

    def loop() -> Iterator[None]:
        ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
        while True:
            judge.zero_grad()
            made = model["make"](torch.randn(64, 4))
            real = functional.binary_cross_entropy_with_logits(model["judge"](X), ones)
            (real + functional.binary_cross_entropy_with_logits(model["judge"](made.detach()), zeros)).backward()
            judge.step()
            maker.zero_grad()
            functional.binary_cross_entropy_with_logits(model["judge"](made), ones).backward()
            maker.step()
            yield

    return Training(model, [judge, maker], loop)


@scenario
def accumulation() -> Training:
    model = mlp()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)

    def loop() -> Iterator[None]:
        while True:
            optimiser.zero_grad()
            for part in range(4):
                rows = slice(part * 16, part * 16 + 16)
                (functional.cross_entropy(model(X[rows]), Y[rows]) / 4).backward()
            optimiser.step()
            yield

    return Training(model, [optimiser], loop)


@scenario
def autocast() -> Training:
    model = mlp()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)

    def loop() -> Iterator[None]:
        while True:
            optimiser.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = functional.cross_entropy(model(X), Y)
            loss.backward()
            optimiser.step()
            yield

    return Training(model, [optimiser], loop)


@scenario
def autocast_with_scaler() -> Training:
    model = mlp()
    optimiser = torch.optim.SGD(model.parameters(), 1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)  # the first steps overflow and are skipped

    def loop() -> Iterator[None]:
        while True:
            optimiser.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = functional.cross_entropy(model(X).float(), Y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimiser)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimiser)
            scaler.update()
            yield

    return Training(model, [optimiser], loop)


@scenario
def clipping_and_schedule() -> Training:
    model = mlp()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 100)

    def loop() -> Iterator[None]:
        while True:
            optimiser.zero_grad()
            functional.cross_entropy(model(X), Y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimiser.step()
            schedule.step()
            yield

    return Training(model, [optimiser], loop)


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.first, self.second = nn.Sequential(nn.Linear(12, 16), nn.Dropout(0.2), nn.ReLU()), nn.Linear(16, 4)
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_() if self.reentrant else x
        return self.second(checkpoint(self.first, x, use_reentrant=self.reentrant))


def _checkpointed(reentrant: bool) -> Training:
    model = Checkpointed(reentrant)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    return Training(model, [optimiser], plainly(model, optimiser, lambda x: model(x.clone())))


@scenario
def activation_checkpointing() -> Training:
    return _checkpointed(False)


@scenario
def reentrant_checkpointing() -> Training:
    return _checkpointed(True)


class TiedAndShared(nn.Module):
    """Weights tied, one layer used twice, an operation in place, and a dict for an output."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.shared, self.leave = nn.Linear(12, 16), nn.Linear(16, 16), nn.Linear(16, 12)
        self.leave.weight = nn.Parameter(self.enter.weight.detach().clone().T.contiguous())
        self.tied = nn.Linear(12, 16)
        self.tied.weight = self.enter.weight
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> dict[str, tuple[torch.Tensor, ...]]:
        x = self.act(self.enter(x))
        x = self.act(self.shared(self.act(self.shared(x))))
        return {"scores": (self.leave(x) + self.tied(self.leave(x)).mean(), x)}


@scenario
def tied_shared_in_place_dict() -> Training:
    model = TiedAndShared()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    return Training(model, [optimiser], plainly(model, optimiser, lambda x: model(x)["scores"][0][:, :4]))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 8, batch_first=True), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output, _ = self.lstm(x.view(-1, 4, 3))
        return self.head(output[:, -1])


@scenario
def lstm() -> Training:
    model = Recurrent()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    return Training(model, [optimiser], plainly(model, optimiser))


@scenario
def loader_with_workers() -> Training:
    model = mlp()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    loader = DataLoader(TensorDataset(X, Y), 16, shuffle=True, num_workers=2, persistent_workers=True)

    def loop() -> Iterator[None]:
        while True:
            for x, y in loader:
                optimiser.zero_grad()
                functional.cross_entropy(model(x), y).backward()
                optimiser.step()
                yield

    return Training(model, [optimiser], loop)


def _compiled(fullgraph: bool) -> Training:
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))
    compiled = torch.compile(model, fullgraph=fullgraph, backend="aot_eager")
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    return Training(model, [optimiser], plainly(model, optimiser, compiled), torch._dynamo.reset)


@scenario
def compiled() -> Training:
    return _compiled(False)


@scenario
def compiled_in_one_graph() -> Training:
    return _compiled(True)


@scenario
def functional_calls() -> Training:
    model = mlp()
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    return Training(
        model, [optimiser], plainly(model, optimiser, lambda x: functional_call(model, dict(model.named_parameters()), (x,)))
    )
