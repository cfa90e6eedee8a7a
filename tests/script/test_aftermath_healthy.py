"""What people do with their data on purpose is not held against them after the end."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Subset, SubsetRandomSampler, TensorDataset, WeightedRandomSampler

from sleuth.core.stage import Severity
from tests.material import digits
from tests.script.looking_back import ask, looked_back, names, train

SIZE = 32
X, Y = (torch.as_tensor(part) for part in digits())
ORDER = torch.randperm(len(X), generator=torch.Generator().manual_seed(1))
X, Y = X[ORDER], Y[ORDER]
WHOLE = TensorDataset(X, Y)
CUT, END = 600, 900

Model, Optimiser = nn.Module, torch.optim.Optimizer


def slices(start: int, end: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Of one array for all: their memory is the same."""
    for at in range(start, end, SIZE):
        yield X[at : min(at + SIZE, end)], Y[at : min(at + SIZE, end)]


def picked(start: int, end: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for rows in (start + torch.randperm(end - start)).split(SIZE):
        yield X[rows], Y[rows]


def measures_on_training_by_the_same_loader(model: Model, optimiser: Optimiser) -> None:
    loader, other = (DataLoader(Subset(WHOLE, range(*part)), SIZE, shuffle=True) for part in ((0, CUT), (CUT, END)))
    for _ in range(5):
        train(model, optimiser, iter(loader))
        ask(model, iter(loader))
        ask(model, iter(other))


def measures_on_training_by_a_second_set(model: Model, optimiser: Optimiser) -> None:
    for _ in range(5):
        train(model, optimiser, iter(DataLoader(TensorDataset(X[:CUT], Y[:CUT]), SIZE, shuffle=True)))
        ask(model, iter(DataLoader(TensorDataset(X[:CUT], Y[:CUT]), 100)))
        ask(model, iter(DataLoader(TensorDataset(X[CUT:END], Y[CUT:END]), 100)))


def measures_on_some_training_samples(model: Model, optimiser: Optimiser) -> None:
    for _ in range(2):
        train(model, optimiser, iter(DataLoader(WHOLE, 8, shuffle=True)))
        ask(model, iter(DataLoader(Subset(WHOLE, range(100)), 50)))


def measures_on_some_training_samples_by_hand(model: Model, optimiser: Optimiser) -> None:
    some = X[:100].clone(), Y[:100].clone()
    for _ in range(2):
        train(model, optimiser, ((x[:8], y[:8]) for x, y in picked(0, len(X))))
        ask(model, iter([some]))


def measures_on_both_by_slices_of_one_array(model: Model, optimiser: Optimiser) -> None:
    for _ in range(5):
        train(model, optimiser, slices(0, CUT))
        ask(model, slices(0, CUT))
        ask(model, slices(CUT, END))
        ask(model, slices(0, END))


def measures_on_both_by_picked_rows(model: Model, optimiser: Optimiser) -> None:
    for _ in range(5):
        train(model, optimiser, picked(0, CUT))
        ask(model, picked(0, CUT))
        ask(model, picked(CUT, END))


def measures_on_everything(model: Model, optimiser: Optimiser) -> None:
    for _ in range(5):
        train(model, optimiser, picked(0, CUT))
        ask(model, iter([(X[:END], Y[:END])]))


def parts_one_set_by_samplers(model: Model, optimiser: Optimiser) -> None:
    for _ in range(5):
        train(model, optimiser, iter(DataLoader(WHOLE, SIZE, sampler=SubsetRandomSampler(range(CUT)))))
        ask(model, iter(DataLoader(WHOLE, SIZE, sampler=SubsetRandomSampler(range(CUT, END)))))


def gives_all_at_once(model: Model, optimiser: Optimiser) -> None:
    train(model, optimiser, ((X[:CUT], Y[:CUT]) for _ in range(80)))
    ask(model, iter([(X[CUT:], Y[CUT:])]))


def learns_one_batch_by_heart(model: Model, optimiser: Optimiser) -> None:
    batch = next(iter(DataLoader(WHOLE, SIZE, shuffle=True)))
    train(model, optimiser, (batch for _ in range(80)))


def fits_few_points_that_are_made_each_time(model: Model, optimiser: Optimiser) -> None:
    few = torch.linspace(-1, 1, 40)
    train(model, optimiser, ((torch.stack([few, few**2], 1), torch.sin(few)) for _ in range(200)))
    many = torch.linspace(-1, 1, 400)
    ask(model, iter([(torch.stack([many, many**2], 1), torch.sin(many))]))


def fits_a_curve_and_looks_at_a_grid(model: Model, optimiser: Optimiser) -> None:
    x = 6 * torch.rand(200, 1) - 3
    grid = torch.linspace(-3, 3, 100)[:, None]
    for _ in range(10):
        train(model, optimiser, ((x, torch.sin(x[:, 0])) for _ in range(10)))
        ask(model, iter([(grid, torch.sin(grid[:, 0]))]))


def draws_again_what_is_rare(model: Model, optimiser: Optimiser) -> None:
    rare = torch.cat([torch.where(Y != 3)[0][:500], torch.where(Y == 3)[0][:10]])
    weights = torch.where(Y[rare] == 3, 5.0, 1.0)
    loader = DataLoader(Subset(WHOLE, rare.tolist()), SIZE, sampler=WeightedRandomSampler(weights.tolist(), 512))
    for _ in range(4):
        train(model, optimiser, iter(loader))


def goes_from_easy_to_hard(model: Model, optimiser: Optimiser) -> None:
    for size in torch.linspace(0.2, 1.0, 12).tolist():
        train(model, optimiser, ((size * x, y) for x, y in picked(0, CUT)))
        ask(model, picked(CUT, END))


def changes_its_samples_each_time(model: Model, optimiser: Optimiser) -> None:
    for _ in range(5):
        train(model, optimiser, ((x + 0.1 * torch.randn_like(x), y) for x, y in picked(0, CUT)))
        ask(model, ((x + 0.1 * torch.randn_like(x), y) for x, y in picked(0, CUT)))
        ask(model, picked(CUT, END))


def chooses_what_to_learn_next(model: Model, optimiser: Optimiser) -> None:
    known, pool = list(range(100)), list(range(100, CUT))
    offered = Subset(WHOLE, pool)
    for _ in range(8):
        for _ in range(2):
            train(model, optimiser, ((X[rows], Y[rows]) for rows in torch.tensor(known)[torch.randperm(len(known))].split(SIZE)))
        model.eval()
        with torch.no_grad():
            sure = torch.cat([model(x).softmax(1).max(1).values for x, _ in DataLoader(offered, 100)])
        chosen = [pool[i] for i in sure.argsort().tolist()[:40]]
        known, pool = known + chosen, [i for i in pool if i not in set(chosen)]
        offered.indices = pool


def asks_as_an_agent_does(model: Model, optimiser: Optimiser) -> None:
    seen: list[torch.Tensor] = []
    place = torch.zeros(2)
    for step in range(400):
        model.eval()
        with torch.no_grad():
            place = 0.9 * place + 0.1 * model(place[None])[0].tanh() + 0.1 * torch.randn(2) * (400 - step) / 400
        seen = [*seen[-200:], place]
        if step > 30:
            x = torch.stack([seen[i] for i in torch.randint(0, len(seen), (SIZE,)).tolist()])
            optimiser.zero_grad()
            functional.mse_loss(model.train()(x), x).backward()
            optimiser.step()


def reads_windows_of_a_text(model: Model, optimiser: Optimiser) -> None:
    text = torch.tensor([ord(c) % 32 for c in "the cat sat on the mat and the dog lay by the log " * 60])
    for _ in range(3):
        windows = (torch.stack([text[i : i + 9] for i in torch.randint(0, len(text) - 400, (SIZE,))]) for _ in range(40))
        model.train()
        for w in windows:
            optimiser.zero_grad()
            functional.cross_entropy(model(w[:, :8]).flatten(0, 1), w[:, 1:].flatten()).backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            last = text[-400 : -400 + 360].view(-1, 9)
            functional.cross_entropy(model(last[:, :8]).flatten(0, 1), last[:, 1:].flatten())


HEALTHY = [
    measures_on_training_by_the_same_loader,
    pytest.param(measures_on_training_by_a_second_set, marks=pytest.mark.long),
    measures_on_some_training_samples,
    measures_on_some_training_samples_by_hand,
    measures_on_both_by_slices_of_one_array,
    pytest.param(measures_on_both_by_picked_rows, marks=pytest.mark.long),
    measures_on_everything,
    pytest.param(parts_one_set_by_samplers, marks=pytest.mark.long),
    gives_all_at_once,
    learns_one_batch_by_heart,
    pytest.param(draws_again_what_is_rare, marks=pytest.mark.long),
    pytest.param(goes_from_easy_to_hard, marks=pytest.mark.long),
    pytest.param(changes_its_samples_each_time, marks=pytest.mark.long),
    chooses_what_to_learn_next,
]


@pytest.mark.parametrize("loop", HEALTHY, ids=lambda loop: loop.__name__)
def test_a_loop_is_not_accused_that(loop) -> None:
    assert not names(looked_back(loop, 64, 10))


REGRESSIONS = [(fits_few_points_that_are_made_each_time, 2), (asks_as_an_agent_does, 2), (fits_a_curve_and_looks_at_a_grid, 1)]


@pytest.mark.parametrize(("loop", "inputs"), REGRESSIONS, ids=lambda part: getattr(part, "__name__", ""))
def test_a_regression_is_not_accused_that(loop, inputs: int) -> None:
    found = looked_back(loop, inputs, 2 if loop is asks_as_an_agent_does else 1)
    assert not [f for f in found.findings if f.severity is not Severity.HINT]


def test_a_language_model_is_not_accused_that_reads_windows_of_a_text() -> None:
    model = nn.Sequential(nn.Embedding(32, 16), nn.Linear(16, 32))
    assert not names(looked_back(reads_windows_of_a_text, 8, 32, model))
