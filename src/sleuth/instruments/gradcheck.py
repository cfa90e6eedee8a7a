"""Analytic gradients against numerical ones, parameter by parameter, in float64."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from sleuth.checks.model.gradient_wrong import BEYOND_NOISE, WRONG
from sleuth.core.errors import UnusableInput
from sleuth.core.trial import GradientError
from sleuth.instruments.columns import BLUE, GREY, RED, html_table, name_axis, number, text_table
from sleuth.instruments.laboratory import Training, opened
from sleuth.instruments.plain import plain
from sleuth.instruments.result import Result, new_figure
from sleuth.probes.model.gradient_check import DIRECTIONS, MOST_PARAMETERS, compare, evenly, summed, surface_of

HEAD = ("parameter", "analytic", "numerical", "error", "")


@dataclass(frozen=True)
class CheckedGradient:
    """Slopes of the loss along one direction of one parameter. `error` is relative to the larger one."""

    path: str
    state: str  # "right", "wrong", or "unclear": flat, or a kink, along every direction that was tried
    error: float | None = None
    analytic: float | None = None
    numeric: float | None = None
    noise: float | None = None  # by which the numerical slope itself wavers


@dataclass(frozen=True)
class GradientChecks(Result):
    parameters: tuple[CheckedGradient, ...]
    left_out: int  # parameters that were not looked at
    notes: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        return not self.wrong

    @property
    def wrong(self) -> tuple[str, ...]:
        return tuple(p.path for p in self.parameters if p.state == "wrong")

    def to_dict(self) -> dict[str, Any]:
        return plain(self)

    def __str__(self) -> str:
        return text_table(HEAD, self._rows(), self._closing())

    def _repr_html_(self) -> str:
        return html_table(HEAD, self._rows(), self._closing())

    def _rows(self) -> list[list[str]]:
        return [[p.path, number(p.analytic), number(p.numeric), number(p.error), p.state] for p in self.parameters]

    def _closing(self) -> list[str]:
        said = f"The gradient is wrong in {', '.join(self.wrong)}: look at the backward of a custom autograd.Function there."
        left = [f"{self.left_out} more parameters were not looked at: raise `most`"] if self.left_out else []
        return [said if self.wrong else "No gradient differs from the numerical one.", *left, *self.notes]

    def plot(self) -> Any:
        figure = new_figure(min(14, max(5.5, 2.5 + 0.22 * len(self.parameters))), 3.8)
        axes = figure.add_subplot()
        colours = {"right": BLUE, "wrong": RED, "unclear": GREY}
        known = [(i, p) for i, p in enumerate(self.parameters) if p.error is not None]
        axes.bar(
            [i for i, _ in known], [max(p.error or 0.0, 1e-16) for _, p in known], color=[colours[p.state] for _, p in known]
        )
        axes.axhline(WRONG, color=RED, linestyle="--", linewidth=1, label=f"wrong above {WRONG:g}")
        axes.set_yscale("log")
        axes.set_ylim(1e-13, 3)
        axes.set_ylabel("relative error")
        axes.set_title("Analytic against numerical gradients")
        axes.legend(frameon=False, fontsize=8)
        name_axis(axes, [p.path for p in self.parameters])
        return figure


def gradcheck(
    model: Any,
    data: Any = None,
    *,
    loss: Callable[..., Any] | None = None,
    optimizer: Any = None,
    step: Callable[[Any, Any], Any] | None = None,
    split: Callable[[Any], tuple[Any, Any]] | None = None,
    parameters: str = "*",
    most: int = MOST_PARAMETERS,
    progress: bool | None = None,
) -> GradientChecks:
    """Compares each parameter's gradient with central differences, on a few samples, in float64, in evaluation mode.

    `parameters` is a pattern such as "decoder.*". Of more than `most` parameters some are chosen, spread over the model.
    """
    training = Training(model, data, loss, optimizer, step, split, progress)
    with opened(training, loss=True) as lab:
        surface = surface_of(lab)
        reached = [path for path in surface.gradients if fnmatchcase(path, parameters)]
        if not reached:
            raise UnusableInput(f"no parameter that the loss reaches fits {parameters!r}.")
        chosen = evenly(reached, most)
        found = []
        for place, path in enumerate(chosen):
            lab.progress(f"Parameter {place + 1} of {len(chosen)}: {path}")
            slopes = [compare(lab, surface, (path,)) for _ in range(DIRECTIONS)]
            known = [s for s in slopes if s is not None]
            found.append(_judged(summed(path, known)) if len(known) == len(slopes) else CheckedGradient(path, "unclear"))
        return GradientChecks(tuple(found), len(reached) - len(chosen), tuple(lab.notes))


def _judged(found: GradientError) -> CheckedGradient:
    wrong = found.relative_error > max(WRONG, BEYOND_NOISE * found.noise)
    return CheckedGradient(
        found.path, "wrong" if wrong else "right", found.relative_error, found.analytic, found.numeric, found.noise
    )
