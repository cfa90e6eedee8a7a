"""The observer changes nothing: weights, optimiser and random state are equal to the last bit, and nothing is left behind."""

import copy
import io
import pickle
from itertools import islice

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import Optimizer

import sleuth
from tests.watch.scenarios import SCENARIOS, Training, adam, compiled_in_one_graph, mlp

STEPS = 200


def run(make, steps: int, watched: bool, **options) -> tuple[list[torch.Tensor], sleuth.Report | None]:
    torch.manual_seed(0)
    training: Training = make()
    loop = training.loop()
    report = None
    if watched:
        with sleuth.watch(training.model, training.optimisers, directory=None, quiet=True, **options) as w:
            for _ in islice(loop, steps):
                pass
        assert not w.notes, w.notes
        report = w.report()
    else:
        for _ in islice(loop, steps):
            pass
    state = training.state()
    loop.close()
    training.closing()
    return state, report


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    places = [(nn.Module, "__call__"), (torch.Tensor, "backward"), (Optimizer, "zero_grad"), (nn.utils, "clip_grad_norm_")]
    before = [getattr(holder, name) for holder, name in places]
    own = "__call__" in vars(nn.Sequential)
    yield
    assert [getattr(holder, name) for holder, name in places] == before
    assert ("__call__" in vars(nn.Sequential)) == own


@pytest.mark.parametrize("options", [{"every": 1}, {}], ids=["every step", "sampled"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_training_ends_with_the_same_bits(name: str, options: dict) -> None:
    plain, _ = run(SCENARIOS[name], STEPS, watched=False)
    seen, report = run(SCENARIOS[name], STEPS, watched=True, **options)
    assert len(plain) == len(seen)
    assert all(torch.equal(a, b) for a, b in zip(plain, seen, strict=True))
    assert report is not None
    assert report.steps > 0


def test_a_compiled_model_is_compiled_once() -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    training = compiled_in_one_graph()
    counters = torch._dynamo.utils.counters
    counters.clear()
    with sleuth.watch(training.model, training.optimisers, directory=None, quiet=True, every=2):
        for _ in islice(training.loop(), 12):
            pass
    training.closing()
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]


@pytest.mark.parametrize(
    "copied",
    [
        pytest.param(lambda model: copy.deepcopy(model), id="deepcopy"),
        pytest.param(lambda model: pickle.loads(pickle.dumps(model)), id="pickle"),
        pytest.param(lambda model: _saved(model), id="torch.save"),
    ],
)
def test_a_watched_model_can_be_copied(copied) -> None:
    torch.manual_seed(0)
    training = adam()
    with sleuth.watch(training.model, training.optimisers, directory=None, quiet=True, every=1) as w:
        loop = training.loop()
        for _ in islice(loop, 3):
            pass
        twin = copied(training.model)
        copied(training.optimisers[0])
        before = w.watching.steps
        assert torch.equal(twin.eval()(torch.ones(2, 12)), training.model.eval()(torch.ones(2, 12)))
        assert w.watching.steps == before


def _saved(thing):
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def test_an_exception_in_the_middle_ends_the_watch_and_comes_through() -> None:
    training = adam()
    with pytest.raises(ZeroDivisionError), sleuth.watch(training.model, training.optimisers, directory=None, quiet=True) as w:
        for i, _ in enumerate(training.loop()):
            if i == 3:
                raise ZeroDivisionError
    assert w.report().steps == 4


def test_two_watches_see_the_same_steps() -> None:
    training = adam()
    options = {"directory": None, "quiet": True, "every": 1}
    with (
        sleuth.watch(training.model, training.optimisers, **options) as one,
        sleuth.watch(training.model, training.optimisers, **options) as two,
    ):
        for _ in islice(training.loop(), 5):
            pass
    assert one.report().steps == two.report().steps == 5


def test_a_cell_that_runs_again_replaces_its_watch() -> None:
    """In a notebook a watch is opened anew and the old one is never closed."""
    training = adam()
    first = sleuth.watch(training.model, training.optimisers, directory=None, quiet=True)
    for _ in islice(training.loop(), 3):
        pass
    second = sleuth.watch(training.model, training.optimisers, directory=None, quiet=True)
    for _ in islice(training.loop(), 3):
        pass
    assert second.report().steps == 3
    first.close()
    second.close()


def test_another_models_steps_are_not_this_ones() -> None:
    torch.manual_seed(0)
    training, other = adam(), mlp()
    with sleuth.watch(training.model, training.optimisers, directory=None, quiet=True) as w:
        loop = training.loop()
        for _ in range(5):
            next(loop)
            functional.cross_entropy(other(torch.ones(4, 12)), torch.zeros(4, dtype=torch.long)).backward()
    calls = [step.calls for step in w.history.many(sleuth.core.observation.Step)]
    assert set(calls) == {("zero_grad", "forward", "backward", "step")}
