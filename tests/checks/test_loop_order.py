"""The order of calls in a loop: what is misplaced, and what is only unusual."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler, swa_utils
from torch.utils.data import DataLoader, TensorDataset

from sleuth.core.stage import Confidence
from tests.checks.loops import STEPS, batches, loss_of, names, net, steps_of, watch
from tests.material import digits

IMPORTED = nn.utils.clip_grad_norm_


def sgd(model: nn.Module, lr: float = 0.05, **options) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr, **options)


def train(model, optimiser, count: int = STEPS, after=lambda: None) -> None:
    model.train()
    for batch in batches(count):
        optimiser.zero_grad()
        loss_of(model, batch).backward()
        optimiser.step()
        after()


# Gradients that are erased, and steps that do not come.


def by_optimiser(model, optimiser):
    optimiser.zero_grad()


def by_optimiser_with_zeros(model, optimiser):
    optimiser.zero_grad(set_to_none=False)


def by_model(model, optimiser):
    model.zero_grad()


def by_hand(model, optimiser):
    for p in model.parameters():
        p.grad = None


def by_hand_with_zeros(model, optimiser):
    for p in model.parameters():
        p.grad.zero_()


def through_data(model, optimiser):
    for p in model.parameters():
        p.grad.data.zero_()


@pytest.mark.parametrize("every", [1, 1000])
@pytest.mark.parametrize("clear", [by_optimiser, by_optimiser_with_zeros, by_model, by_hand, by_hand_with_zeros, through_data])
def test_clearing_between_backward_and_step_is_named(clear, every: int) -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            loss_of(model, batch).backward()
            clear(model, optimiser)
            optimiser.step()

    assert names(watch(model, optimiser, run, every=every)) == ["gradients-erased"]


def test_a_bad_batch_may_be_thrown_away() -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for i, batch in enumerate(batches()):
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            if i % 7 == 3:
                optimiser.zero_grad()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


def test_gradients_that_are_zero_by_themselves_were_not_erased() -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            (0 * loss_of(model, batch)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()

    assert not names(watch(model, optimiser, run, every=1))


@pytest.mark.parametrize("zero_first", [True, False])
def test_a_step_before_the_backward_is_told_from_an_erased_gradient(zero_first: bool) -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            if zero_first:
                optimiser.zero_grad()
            loss = loss_of(model, batch)
            optimiser.step()
            loss.backward()
            if not zero_first:
                optimiser.zero_grad()

    report = watch(model, optimiser, run)
    assert names(report) == ["missing-step"]
    assert "before the backward" in report.findings[0].summary
    assert report.findings[0].location is not None
    assert "step()" in report.findings[0].location.text


@pytest.mark.parametrize("clear", [True, False])
def test_a_training_that_never_steps_is_named(clear: bool) -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            if clear:
                optimiser.zero_grad()
            loss_of(model, batch).backward()

    report = watch(model, optimiser, run)
    assert names(report) == ["missing-step"]
    assert report.findings[0].location is not None
    assert "backward" in report.findings[0].location.text


def test_one_of_two_optimisers_that_never_steps_is_named_at_the_end() -> None:
    model = net()
    first, last = (torch.optim.Adam(model[i].parameters(), 1e-3) for i in (0, -1))

    def run() -> None:
        for batch in batches():
            first.zero_grad()
            last.zero_grad()
            loss_of(model, batch).backward()
            last.step()

    report = watch(model, [first, last], run)
    assert names(report) == ["missing-step"]
    assert report.findings[0].where == "optimiser 0"
    assert report.findings[0].confidence is Confidence.LIKELY


def test_an_optimiser_that_steps_through_another_is_not_missing() -> None:
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            super().__init__([p for g in inner.param_groups for p in g["params"]], {})
            self.inner = inner

    model = net()
    wrapper = Wrapper(sgd(model))

    def run() -> None:
        for batch in batches():
            wrapper.zero_grad()
            loss_of(model, batch).backward()
            wrapper.inner.step()

    report = watch(model, wrapper, run)
    assert not names(report), report.to_text()


def test_a_few_backwards_are_too_little_to_miss_a_step() -> None:
    model = net()

    def run() -> None:
        for batch in batches(6):
            loss_of(model, batch).backward()

    report = watch(model, sgd(model), run)
    assert not names(report)
    assert "missing-step" in report.not_examined


def test_a_loop_that_only_evaluates_misses_nothing() -> None:
    model = net()

    def run() -> None:
        with torch.no_grad():
            for batch in batches():
                model.eval()(batch[0])

    assert not names(watch(model, sgd(model), run))


@pytest.mark.parametrize("through_data", [True, False])
def test_weights_that_somebody_else_moves_miss_no_step(through_data: bool) -> None:
    model = net()

    def run() -> None:
        for batch in batches():
            model.zero_grad()
            loss_of(model, batch).backward()
            for p in model.parameters():
                if through_data:
                    p.data -= 0.01 * p.grad
                else:
                    with torch.no_grad():
                        p -= 0.01 * p.grad

    assert not names(watch(model, sgd(model), run))


# Modes.


def validate(model, *, mode: bool | None, gradients: bool, count: int = 5) -> None:
    if mode is not None:
        model.train(mode)
    with torch.set_grad_enabled(gradients):
        for batch in batches(count):
            functional.cross_entropy(model(batch[0]), batch[1])


def epochs(model, optimiser, *, mode: bool | None = False, gradients: bool = False, back: bool = True, count: int = 4):
    def run() -> None:
        model.train()
        for _ in range(count):
            if back:
                model.train()
            for batch in batches(12):
                optimiser.zero_grad()
                loss_of(model, batch).backward()
                optimiser.step()
            validate(model, mode=mode, gradients=gradients)

    return run


def test_a_training_that_stays_in_evaluation_mode_is_named() -> None:
    model = net(dropout=0.3, norm=True)
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser, back=False))
    assert names(report) == ["training-in-eval-mode"]
    assert report.findings[0].first_step == 12


def test_a_model_whose_layers_have_no_mode_may_stay_in_evaluation_mode() -> None:
    model = net()
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser, back=False))
    assert not names(report)
    assert "training-in-eval-mode" in report.clear


def test_validation_in_its_own_mode_is_healthy() -> None:
    model = net(dropout=0.3, norm=True)
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser))
    assert not names(report)
    assert {"training-in-eval-mode", "validating-in-train-mode", "validation-builds-graph"} <= set(report.clear)


def test_batch_norm_that_is_stopped_on_purpose_is_healthy() -> None:
    model = net(dropout=0.3, norm=True)
    optimiser = sgd(model)

    def run() -> None:
        model.train()
        for i, batch in enumerate(batches(40)):
            if i == 20:
                model[1].eval()
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run, every=1))


def test_a_part_that_was_left_in_evaluation_mode_is_named() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(net(dropout=0.3, norm=True), nn.Dropout(0.1), nn.Linear(10, 10))
    optimiser = sgd(model)

    def run() -> None:
        model.train()
        for i, batch in enumerate(batches(40)):
            if i == 20:
                model[0].eval()
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    assert names(watch(model, optimiser, run, every=1)) == ["training-in-eval-mode"]


@pytest.mark.parametrize("by_gradient", [True, False])
def test_a_frozen_trunk_may_rest(by_gradient: bool) -> None:
    trunk, head = net(dropout=0.3, norm=True), nn.Sequential(nn.Linear(10, 10), nn.Dropout(0.1), nn.Linear(10, 10))
    model = nn.Sequential(trunk, head)
    if by_gradient:
        trunk.requires_grad_(False)
    optimiser = sgd(head)

    def run() -> None:
        model.eval()
        head.train()
        for batch in batches(40):
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


def test_attacks_made_in_evaluation_mode_are_healthy() -> None:
    model = net(dropout=0.3, norm=True)
    optimiser = sgd(model)

    def run() -> None:
        for x, y in batches(40):
            model.eval()
            x = x.clone().requires_grad_()
            for _ in range(4):
                (slope,) = torch.autograd.grad(functional.cross_entropy(model(x), y), x)
                x = (x + 0.01 * slope.sign()).detach().requires_grad_()
            model.train()
            optimiser.zero_grad()
            loss_of(model, (x.detach(), y)).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


@pytest.mark.parametrize("layers", [{"dropout": 0.3}, {"norm": True}])
def test_validation_in_training_mode_is_named(layers: dict) -> None:
    model = net(**layers)
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser, mode=None))
    assert names(report) == ["validating-in-train-mode"], report.to_text()


def test_one_validation_after_the_training_counts() -> None:
    model = net(dropout=0.3)
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser, mode=None, count=1))
    assert names(report) == ["validating-in-train-mode"]


def test_a_model_without_modes_may_be_validated_in_any() -> None:
    model = net()
    optimiser = sgd(model)
    assert not names(watch(model, optimiser, epochs(model, optimiser, mode=None)))


def test_a_teacher_within_the_step_is_no_validation() -> None:
    model = net(dropout=0.3)
    optimiser = sgd(model)

    def run() -> None:
        for x, y in batches(40):
            with torch.no_grad():
                views = [model(x + 0.01 * i) for i in range(3)]
            optimiser.zero_grad()
            (functional.cross_entropy(model(x), y) + (model(x) - views[0]).square().mean()).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


def test_asking_the_same_again_and_again_is_no_validation() -> None:
    model = net(dropout=0.3)
    optimiser = sgd(model)
    (probe,) = (x for x, _ in batches(1))

    def run() -> None:
        for _ in range(4):
            train(model, optimiser, 10)
            with torch.no_grad():
                torch.stack([model(probe) for _ in range(20)]).std(0)

    assert not names(watch(model, optimiser, run))


def test_batch_norm_may_be_calibrated_anew() -> None:
    model = net(norm=True)
    optimiser = sgd(model)

    def run() -> None:
        for _ in range(4):
            train(model, optimiser, 10)
            with torch.no_grad():
                model(next(batches(1))[0])
            swa_utils.update_bn([x for x, _ in batches(6)], model)

    assert not names(watch(model, optimiser, run))


@pytest.mark.parametrize("mode", [None, False])
def test_a_validation_with_autograd_on_is_a_hint(mode: bool | None) -> None:
    model = net(dropout=0.3 if mode is False else 0.0)
    optimiser = sgd(model)
    report = watch(model, optimiser, epochs(model, optimiser, mode=mode, gradients=True))
    assert names(report) == ["validation-builds-graph"]
    assert report.status == "healthy"
    assert report.findings[0].location is not None
    assert "functional.cross_entropy(model(batch[0])" in report.findings[0].location.text


def test_several_views_for_one_backward_are_no_validation() -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for i, (x, y) in enumerate(batches(40)):
            scores = [model(x + 0.01 * view) for view in range(4 if i % 8 else 6)]
            optimiser.zero_grad()
            sum(functional.cross_entropy(s, y) for s in scores).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


def test_episodes_of_many_calls_are_no_validation() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimiser = sgd(model)

    def run() -> None:
        for episode in range(30):
            logs = [model(torch.randn(4)).log_softmax(0)[0] for _ in range(5 + episode % 7)]
            optimiser.zero_grad()
            (-sum(logs) / len(logs)).backward()
            optimiser.step()

    assert not names(watch(model, optimiser, run))


# Schedulers.


def schedulers(optimiser):
    yield lr_scheduler.StepLR(optimiser, 3)
    yield lr_scheduler.CosineAnnealingWarmRestarts(optimiser, 5)
    warm = lr_scheduler.LinearLR(optimiser, 0.1, total_iters=4)
    yield lr_scheduler.SequentialLR(optimiser, [warm, lr_scheduler.ExponentialLR(optimiser, 0.9)], [4])
    yield lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(optimiser, 3), lr_scheduler.ExponentialLR(optimiser, 0.99)])


@pytest.mark.parametrize("which", range(4))
def test_a_scheduler_after_the_step_is_healthy_and_counts_once(which: int) -> None:
    model = net()
    optimiser = sgd(model)
    schedule = list(schedulers(optimiser))[which]
    steps = steps_of(model, optimiser, lambda: train(model, optimiser, after=schedule.step))
    assert steps[5].counts["scheduler"] == 1
    report = watch(model, optimiser, lambda: train(model, optimiser, after=schedule.step))
    assert not names(report)
    assert "scheduler-before-optimiser" in report.clear


@pytest.mark.parametrize("which", range(4))
@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_scheduler_between_backward_and_step_is_named(which: int) -> None:
    model = net()
    optimiser = sgd(model)
    schedule = list(schedulers(optimiser))[which]

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            schedule.step()
            optimiser.step()

    report = watch(model, optimiser, run)
    assert names(report) == ["scheduler-before-optimiser"]
    assert report.findings[0].location is not None
    assert "schedule.step" in report.findings[0].location.text


@pytest.mark.parametrize("per_batch", [True, False])
@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_scheduler_before_the_first_step_is_named(per_batch: bool) -> None:
    model = net()
    optimiser = sgd(model)
    schedule = lr_scheduler.ExponentialLR(optimiser, 0.9)

    def run() -> None:
        for _ in range(4):
            if not per_batch:
                schedule.step()
            for batch in batches(6):
                if per_batch:
                    schedule.step()
                optimiser.zero_grad()
                loss_of(model, batch).backward()
                optimiser.step()

    assert names(watch(model, optimiser, run)) == ["scheduler-before-optimiser"]


@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_schedule_may_be_wound_forward_first() -> None:
    model = net()
    optimiser = sgd(model)
    schedule = lr_scheduler.ExponentialLR(optimiser, 0.99)

    def run() -> None:
        for _ in range(5):
            schedule.step()
        train(model, optimiser, after=schedule.step)

    assert not names(watch(model, optimiser, run))


def test_a_plateau_may_be_measured_before_the_first_step() -> None:
    model = net()
    optimiser = sgd(model)
    schedule = lr_scheduler.ReduceLROnPlateau(optimiser)

    def run() -> None:
        for _ in range(4):
            schedule.step(1.0)
            train(model, optimiser, 6)

    assert not names(watch(model, optimiser, run))


def test_a_scheduler_of_another_optimiser_stands_where_it_likes() -> None:
    model = net()
    first, last = (torch.optim.SGD(model[i].parameters(), 0.05) for i in (0, -1))
    schedules = [lr_scheduler.ExponentialLR(o, 0.99) for o in (first, last)]

    def run() -> None:
        for batch in batches():
            model.zero_grad()
            loss_of(model, batch).backward()
            first.step()
            schedules[0].step()
            last.step()
            schedules[1].step()

    assert not names(watch(model, [first, last], run))


@pytest.mark.filterwarnings("ignore:Detected call")
def test_a_first_step_that_the_scaler_skips_is_not_the_schedulers_fault() -> None:
    model = net()
    optimiser = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    schedule = lr_scheduler.ExponentialLR(optimiser, 0.99)

    def run() -> None:
        for i, batch in enumerate(batches()):
            optimiser.zero_grad()
            scaler.scale(loss_of(model, batch) * (1e9 if i == 0 else 1)).backward()
            scaler.step(optimiser)
            scaler.update()
            schedule.step()

    assert not names(watch(model, optimiser, run))


# Clipping.


@pytest.mark.parametrize("to_none", [True, False])
@pytest.mark.parametrize(
    ("name", "where"),
    # torch itself does not let clip_grad_value_ have nothing.
    [("clip_grad_norm_", "after the step"), ("clip_grad_norm_", "after zero_grad"), ("clip_grad_value_", "after the step")],
)
def test_clipping_in_the_wrong_place_is_named(name: str, where: str, to_none: bool) -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        clip = getattr(nn.utils, name)
        for batch in batches():
            optimiser.zero_grad(set_to_none=to_none)
            if where == "after zero_grad":
                clip(model.parameters(), 1.0)
            loss_of(model, batch).backward()
            optimiser.step()
            if where == "after the step":
                clip(model.parameters(), 1.0)

    report = watch(model, optimiser, run)
    assert names(report) == ["clipping-misplaced"]
    assert report.findings[0].location is not None
    assert "clip(" in report.findings[0].location.text


@pytest.mark.parametrize("part", [lambda m: m.parameters(), lambda m: list(m[0].parameters()), lambda m: m[0].weight])
def test_clipping_before_the_step_is_healthy(part) -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            nn.utils.clip_grad_norm_(part(model), 1.0)
            optimiser.step()

    assert not names(watch(model, optimiser, run))


def test_clipping_that_was_imported_before_the_watch_is_heard() -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        train(model, optimiser, after=lambda: IMPORTED(model.parameters(), 1.0))

    assert names(watch(model, optimiser, run)) == ["clipping-misplaced"]


def test_asking_for_the_norm_after_the_step_is_healthy() -> None:
    model = net()
    optimiser = sgd(model)

    def run() -> None:
        train(model, optimiser, after=lambda: nn.utils.clip_grad_norm_(model.parameters(), float("inf")))

    assert not names(watch(model, optimiser, run))


def test_clipping_of_another_model_is_its_own_matter() -> None:
    model, other = net(), net()
    optimiser, its = sgd(model), sgd(other)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()
            its.zero_grad()
            loss_of(other, batch).backward()
            nn.utils.clip_grad_norm_(other.parameters(), 1.0)
            its.step()

    assert not names(watch(model, optimiser, run))


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("unscale", ["never", "before", "after"])
def test_clipping_before_unscaling_is_named(unscale: str, enabled: bool) -> None:
    model = net()
    optimiser = sgd(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, enabled=enabled)

    def run() -> None:
        for batch in batches():
            optimiser.zero_grad()
            scaler.scale(loss_of(model, batch)).backward()
            if unscale == "before":
                scaler.unscale_(optimiser)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if unscale == "after":
                scaler.unscale_(optimiser)
            scaler.step(optimiser)
            scaler.update()

    found = names(watch(model, optimiser, run))
    assert found == (["clipping-misplaced"] if enabled and unscale != "before" else [])


# Optimisers that come and go.


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), 1e-3)


def loader() -> DataLoader:
    x, y = (torch.as_tensor(a[:320]) for a in digits())
    return DataLoader(TensorDataset(x, y), 32, shuffle=True)


def rebuilding(model, make, *, count: int = 6, passes: int = 1, between=lambda model: None, carry: bool = False):
    def run() -> None:
        data, old = loader(), None
        for _ in range(count):
            optimiser = make(model)
            if carry and old is not None:
                optimiser.load_state_dict(old.state_dict())
            for _ in range(passes):
                for batch in data:
                    optimiser.zero_grad()
                    loss_of(model, batch).backward()
                    optimiser.step()
            old = optimiser
            between(model)

    return run


@pytest.mark.parametrize("given", [True, False])
def test_an_optimiser_made_anew_every_epoch_is_named(given: bool) -> None:
    model = net()
    report = watch(model, [adam(model)] if given else [], rebuilding(model, adam))
    assert names(report) == ["optimiser-rebuilt"], report.to_text()
    assert report.findings[0].location is not None
    assert "torch.optim.Adam(" in report.findings[0].location.text


def test_an_optimiser_made_anew_every_step_is_named() -> None:
    model = net()

    def run() -> None:
        for batch in batches():
            optimiser = sgd(model, momentum=0.9)
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            optimiser.step()

    assert names(watch(model, None, run)) == ["optimiser-rebuilt"]


def reset(model: nn.Module) -> None:
    for layer in model:
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"make": sgd}, id="there is no state to lose"),
        pytest.param({"make": adam, "count": 2}, id="a second phase"),
        pytest.param({"make": adam, "passes": 3}, id="phases of several epochs"),
        pytest.param({"make": adam, "between": reset}, id="folds that begin anew"),
        pytest.param({"make": adam, "carry": True}, id="the state is handed on"),
    ],
)
def test_a_new_optimiser_may_be_meant(options: dict) -> None:
    model = net()
    report = watch(model, None, rebuilding(model, **options))
    assert not names(report), report.to_text()


def test_lbfgs_may_be_started_anew() -> None:
    model = net()

    def run() -> None:
        for batch in batches(8):
            optimiser = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)

            def closure(optimiser=optimiser, batch=batch) -> torch.Tensor:
                optimiser.zero_grad()
                loss = loss_of(model, batch)
                loss.backward()
                return loss

            optimiser.step(closure)

    assert not names(watch(model, None, run))


def test_layers_that_are_unfrozen_one_by_one_may_have_new_optimisers() -> None:
    model = nn.Sequential(*[layer for _ in range(5) for layer in (nn.Linear(64, 64), nn.ReLU())], nn.Linear(64, 10))

    def run() -> None:
        for stage in range(1, 6):
            optimiser = torch.optim.Adam([p for layer in model[-2 * stage :] for p in layer.parameters()], 1e-3)
            for batch in loader():
                model.zero_grad()
                loss_of(model, batch).backward()
                optimiser.step()

    assert not names(watch(model, None, run))


def test_optimisers_that_take_turns_are_healthy() -> None:
    model = net()
    pair = [adam(model), sgd(model, momentum=0.9)]

    def run() -> None:
        for i, batch in enumerate(batches(40)):
            model.zero_grad()
            loss_of(model, batch).backward()
            pair[i % 2].step()

    assert not names(watch(model, None, run))


def test_optimisers_are_met_without_being_given() -> None:
    model = net()
    optimiser = adam(model)
    steps = steps_of(model, None, lambda: train(model, optimiser))
    assert len(steps) == STEPS
    assert {step.calls for step in steps} == {("zero_grad", "forward", "backward", "step"), ("forward", "backward", "step")}
    assert all(step.loss is not None for step in steps)


def test_a_backward_is_heard_though_the_optimiser_holds_another_model() -> None:
    model = net()
    optimiser = adam(net())
    steps = steps_of(model, optimiser, lambda: train(model, optimiser))
    assert {step.calls[-1] for step in steps} == {"step-without-gradient"}
    assert all("backward" in step.calls and step.loss is not None for step in steps)


def test_no_optimiser_is_kept_alive() -> None:
    model = net()
    gone: list[weakref.ref] = []

    def run() -> None:
        for _ in range(4):
            optimiser = adam(model)
            train(model, optimiser, 4)
            gone.append(weakref.ref(optimiser))
        del optimiser
        gc.collect()
        assert not any(ref() for ref in gone)

    watch(model, [adam(model)], run)
    watch(model, None, run)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_step_is_not_missed() -> None:
    torch._dynamo.reset()
    model = net()
    optimiser = adam(model)

    @torch.compile(backend="eager")
    def step() -> None:
        optimiser.step()

    def run() -> None:
        for batch in batches(12):
            optimiser.zero_grad()
            loss_of(model, batch).backward()
            step()

    report = watch(model, optimiser, run)
    torch._dynamo.reset()
    assert not names(report), report.to_text()
