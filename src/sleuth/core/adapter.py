"""The protocol between sleuth and a framework.

Capabilities are separate abstract classes: what an adapter does not inherit turns into *not examined*, and a
misspelt method fails at construction. docs/design.md shows how each framework fills them in.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sleuth.core.guard import Guard
from sleuth.core.inspection import AttentionMap, ClassActivation, Kernels, Maps, Part, Passage, Route
from sleuth.core.kept import Kept
from sleuth.core.location import Location
from sleuth.core.observation import Architecture, Observation, Origin, Settings
from sleuth.core.scene import Replayed, Scene
from sleuth.core.subject import Parts, Subject, Usage
from sleuth.core.trial import Connection, Flow
from sleuth.core.workload import Cost, Hear, LayerWork, Wanted

Emit = Callable[[Observation], None]


class Adapter(ABC):
    """What every adapter must do. An array is whatever the framework computes with."""

    name: ClassVar[str]

    @abstractmethod
    def claims(self, thing: Any) -> bool:
        """Is this model mine? Never imports a framework to find out."""

    @abstractmethod
    def is_array(self, thing: Any) -> bool: ...

    @abstractmethod
    def values(self, array: Any) -> np.ndarray:
        """The values, in host memory; dtypes that NumPy lacks are widened to float32."""

    @abstractmethod
    def like(self, values: np.ndarray, array: Any) -> Any:
        """An array of the framework with these values and the dtype and device of `array`."""

    @abstractmethod
    def dtype(self, array: Any) -> str:
        """Such as float32, bfloat16, int64."""

    @abstractmethod
    def device(self, array: Any) -> str: ...

    @abstractmethod
    def measure(self, arrays: Sequence[Any]) -> np.ndarray:
        """Statistics of many arrays, one row each (core.statistics), with one device synchronisation."""

    @abstractmethod
    def batches(self, source: Any, batch_size: int) -> Iterable[Any] | None:
        """Batches of a data source that only this framework knows (a Dataset); None for any other."""

    @abstractmethod
    def preserve(self, subject: Subject) -> AbstractContextManager[None]:
        """On every way out, all random states, gradients, modes and loader generators are as they were."""


class Describes(ABC):
    @abstractmethod
    def architecture(self, subject: Subject) -> Architecture: ...

    @abstractmethod
    def settings(self, subject: Subject) -> Settings: ...


@dataclass(frozen=True)
class Gradients:
    loss: float
    by_path: Mapping[str, Any]  # trainable parameter → array, or None where the loss does not reach it


class Bench(ABC):
    """One joint copy of model, loss and optimiser to experiment on: nothing done here reaches the user's objects."""

    note: str | None = None  # what the report must say, such as "the model could not be copied"

    @abstractmethod
    def paths(self) -> tuple[str, ...]:
        """The trainable parameters, in the order of the model."""

    @abstractmethod
    def parameter(self, path: str) -> Any:
        """The parameter as it is now."""

    @abstractmethod
    def write(self, path: str, values: np.ndarray) -> None: ...

    @abstractmethod
    def snapshot(self) -> Any:
        """Weights, buffers, optimiser state and random state."""

    @abstractmethod
    def restore(self, snapshot: Any) -> None: ...

    @abstractmethod
    def set_training(self, on: bool) -> None:
        """Training mode as the user had it (frozen parts stay in eval), or everything in eval mode."""

    @abstractmethod
    def observe(self, batch: Parts, step: int) -> Iterator[Observation]:
        """One forward and loss, listened to: Frame of activations, Units, LossCall; a Failure when it raises."""

    @abstractmethod
    def forward(self, inputs: Any) -> Any:
        """The model's output, without gradients."""

    @abstractmethod
    def outputs(self, batch: Parts) -> tuple[Any, ...]:
        """What the model returned at each of its calls in one forward and loss, without gradients: also inside `step`."""

    @abstractmethod
    def usage(self, batch: Parts) -> Usage | None:
        """What `step` does with the arrays of the raw batch; None where that cannot be followed."""

    @abstractmethod
    def loss(self, batch: Parts) -> float:
        """Without gradients."""

    @abstractmethod
    def gradients(self, batch: Parts) -> Gradients: ...

    @abstractmethod
    def step(self, batch: Parts) -> float:
        """Forward, loss, backward and one optimiser step; the loss before it."""

    @abstractmethod
    def apply(self, batch: Parts) -> None:
        """One optimiser step with the gradients that `gradients(batch)` has just computed."""

    @property
    @abstractmethod
    def lr(self) -> float | None: ...

    @abstractmethod
    def set_lr(self, lr: float) -> None:
        """Rates of several groups keep their proportions."""

    @property
    @abstractmethod
    def weight_decay(self) -> float | None:
        """The largest that the user's optimiser applies to a group; None where it is not known."""

    @abstractmethod
    def scale_weight_decay(self, factor: float) -> None:
        """Every group's weight decay times this; a snapshot brings it back."""

    @abstractmethod
    def double(self) -> "Bench":
        """A copy that computes in float64; raises Unsupported where that cannot be had."""

    @abstractmethod
    def explain_failure(self, error: Exception, phase: str) -> Observation:
        """The `Failure` behind an exception: layer, expected, got, the user's line, advice."""


class Steps(ABC):
    @abstractmethod
    def bench(self, subject: Subject) -> AbstractContextManager[Bench]: ...


@dataclass(frozen=True)
class Rows:
    """A data set whose samples can be read by position, in its own order, however a loader shuffles it."""

    count: int
    take: Callable[[np.ndarray], Any]  # positions → one batch of these samples
    bulk: bool = False  # thousands are taken as quickly as one: they stand in arrays
    whole: bool = True  # False: the source draws some of these samples and leaves others out


class Orders(ABC):
    @abstractmethod
    def rows(self, source: Any) -> Rows | None:
        """The data set behind a source; None where samples come only as the source gives them."""


@dataclass(frozen=True)
class Crew:
    """The worker processes of a loader. They are tried as a crew of their own: the loader and its workers are left alone."""

    count: int
    samples: int  # of the data set; 0: a stream
    stream: bool  # each worker reads a stream of its own; otherwise they are told positions
    persistent: bool  # they live on from epoch to epoch
    # (positions of each batch, or how many batches of a stream; workers; epochs; seconds) → batches by epoch. Workers take
    # turns: the first batch is the first worker's. None of them is left when this returns or raises.
    read: Callable[[Sequence[Sequence[int]] | int, int, int, float], list[list[Any]]]


class Employs(ABC):
    @abstractmethod
    def crew(self, source: Any) -> Crew | None:
        """None where a source is not a loader of this framework."""


class Substitutes(ABC):
    @abstractmethod
    def loss_with(self, bench: Bench, batch: Parts, change: Callable[[Any], Any]) -> float:
        """The loss of a batch, without gradients, where each thing that the model returns goes through `change` first."""


class Watching(ABC):
    """One watch of the user's own loop. What it notes waits until `drain`, which another thread may call."""

    own_seconds: float = 0.0  # spent inside the user's training
    steps: int = 0
    looks: int = 0  # steps that were looked at in full
    dropped: int = 0  # steps that were left out because nobody drained
    trouble: str | None = None  # why it stopped listening before its end
    remarks: tuple[str, ...] = ()  # what could not be listened to

    @abstractmethod
    def open(self) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Every hook is gone afterwards, whatever happened."""

    @abstractmethod
    def drain(self) -> list[Observation]:
        """What was noted since the last time."""

    def take_kept(self) -> Kept | None:
        """After `close`, once: what was kept of the model and of the data that passed by."""
        return None

    @abstractmethod
    def explain(self, error: BaseException) -> list[Observation]:
        """What is behind an exception that leaves the loop: a `Crash`, and what is known of it. Before `close`."""


class Watches(ABC):
    @abstractmethod
    def watch(
        self,
        model: Any,
        optimisers: Sequence[Any],
        *,
        every: int | None,
        overhead: float,
        guard: Guard | None = None,
        keeps: bool = False,
    ) -> Watching:
        """`keeps`: some of what passes by is kept for an examination after the end, see `Watching.take_kept`."""


class WrapsSteps(ABC):
    """Of a framework whose steps are compiled functions: those that were compiled already cannot be heard from outside."""

    @abstractmethod
    def listened(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The same step, such that a watch hears it. Raises UnusableInput where it is none."""


@dataclass(frozen=True)
class Discovered:
    """A training that has begun somewhere in the user's code: what is stepped, and by whom."""

    model: Any
    optimisers: tuple[Any, ...]
    name: str


class Attended(ABC):
    """A watch that was opened for a training that was discovered."""

    @property
    @abstractmethod
    def steps(self) -> int: ...

    @abstractmethod
    def end(self) -> None:
        """Another training has taken its place."""

    @abstractmethod
    def drop(self) -> None:
        """It had not begun yet, and is taken up again together with another: nothing of it is kept."""


class Discovering(ABC):
    """Listens for trainings that begin, whoever begins them."""

    trouble: str | None = None  # why it stopped listening before its end
    missed: int = 0  # trainings that began after enough others

    @abstractmethod
    def open(self, *, found_already: bool = False) -> None:
        """`found_already`: what was made before now counts as well."""

    @abstractmethod
    def close(self) -> None:
        """Every hook is gone afterwards."""


class Discovers(ABC):
    @abstractmethod
    def discover(self, begin: Callable[[Discovered], Attended], *, steps: int | None = None) -> Discovering:
        """`begin` is called before the first step of a training; it opens a watch. After `steps` steps in all the loop is left by
        `EnoughSteps`."""


class Explains(ABC):
    @abstractmethod
    def explain(self, error: BaseException) -> list[Observation]:
        """What is behind an exception of the user's code that no watch was open for: a `Crash`, and what is known of it."""


class Replays(ABC):
    @abstractmethod
    def replay(self, subject: Subject, scene: Scene) -> Replayed:
        """Does the scene's step again with the subject's model, which takes the scene's weights. Raises UnusableInput where the
        scene and the model do not go together."""


class Traces(ABC):
    @abstractmethod
    def connection(self, bench: Bench, batch: Parts) -> Connection:
        """One step, op by op: which parameters the loss reaches and where the graph is cut."""

    @abstractmethod
    def flow(self, bench: Bench, batch: Parts) -> Flow:
        """One forward pass, op by op: which operation feeds which. Raises what the user's code raises."""

    @abstractmethod
    def origin(self, bench: Bench, batch: Parts) -> Origin | None:
        """One step, op by op: where the first NaN or Inf is born; None when all is finite."""


@dataclass(frozen=True)
class Bypass:
    """`loss` tells the loss of the present weights as if the derivative of this activation were one around where it was found."""

    name: str
    location: Location | None  # in the forward pass
    loss: Callable[[], float]


class Dissects(ABC):
    """Looking into a backward that the user wrote by hand."""

    @abstractmethod
    def bypasses(self, bench: Bench, batch: Parts) -> list[Bypass]:
        """Of each activation that the forward pass was seen to use, and of all of them together."""

    @abstractmethod
    def backward_line(self, bench: Bench, path: str, *, upstream: bool) -> Location | None:
        """The user's line that makes the gradient of this parameter; `upstream`: that makes what flows into it."""


class Overhears(ABC):
    """What happens inside a model while a bench runs it."""

    @abstractmethod
    def held_gradients(self, model: Any) -> Mapping[str, Any]:
        """Those that the user's own backward has left: trainable parameter → array, or None."""

    @abstractmethod
    def overheard(
        self, bench: Bench, wanted: Wanted, value: Hear, gradient: Hear | None = None, *, operations: bool = False
    ) -> AbstractContextManager[None]:
        """While it is open, `value` is given what the wanted layers put out, `gradient` the loss's gradient by that, if there is
        a backward. Operations beside activations are heard where they are asked for."""


class Lends(ABC):
    """What a bench holds beside its trainable parameters."""

    @abstractmethod
    def lent(self, bench: Bench) -> tuple[Any, Any]:
        """The model and the optimiser that the bench trains, as the user's own code that saves and loads would be given them.
        None for an optimiser that is not there. Raises Unsupported where they are no objects that can be changed in place."""

    @abstractmethod
    def statistics(self, bench: Bench) -> Mapping[str, Any]:
        """Arrays that the model keeps without learning them, such as running means: path → array as it is now."""

    @abstractmethod
    def write_statistic(self, bench: Bench, path: str, values: np.ndarray) -> None: ...


class Profiles(ABC):
    @abstractmethod
    def cost(self, bench: Bench, batches: Iterator[Parts], *, steps: int, warm_up: int, tell: Callable[[str], None]) -> Cost:
        """Takes so many training steps. The caller restores the bench."""

    @abstractmethod
    def work(self, bench: Bench, batch: Parts, repeats: int) -> tuple[LayerWork, ...]:
        """Of the forward pass and loss alone, without a profiler: the quickest of the repeats speaks."""


class Inspects(ABC):
    """Looking at a model for its own sake. Nothing of the user's is changed: work is done on a copy, without training mode
    unless `as_is`. `inputs` is what the model is called with; a tuple is several arguments, a mapping may be keywords."""

    @abstractmethod
    def parts(self, model: Any) -> tuple[Part, ...]:
        """The tree in the order of definition, each part after the one that holds it."""

    @abstractmethod
    def made(self, model: Any, shape: tuple[int, ...], dtype: str | None) -> Any:
        """An array to try the model with, where its parameters are; random numbers of its own, or zeros for whole numbers."""

    @abstractmethod
    def looking(self, source: Any) -> AbstractContextManager[None]:
        """Around a look into a data source: its generators, its workers and all random states are as before on every way out."""

    @abstractmethod
    def passage(self, model: Any, inputs: Any, *, time: bool = False, as_is: bool = False) -> Passage:
        """One forward pass, visit by visit. What the user's code raises becomes `failure`. `time`: several are measured."""

    @abstractmethod
    def route(self, model: Any, inputs: Any) -> Route:
        """One forward pass, operation by operation. Raises UnusableInput where it fails."""

    @abstractmethod
    def kernels(self, model: Any, layer: str | None) -> Kernels:
        """Of the named convolution, or of the first."""

    @abstractmethod
    def maps(self, model: Any, inputs: Any, layers: Sequence[str]) -> tuple[Maps, ...]:
        """What these layers put out, in the order of calls; without names, every convolution's."""

    @abstractmethod
    def class_activation(self, model: Any, inputs: Any, layer: str | None, target: int | Sequence[int] | None) -> ClassActivation:
        """Grad-CAM of the named layer, or of the last that has a map; without a target, of the class with the highest score."""

    @abstractmethod
    def attention(self, model: Any, inputs: Any) -> tuple[AttentionMap, ...]:
        """Every attention of one forward pass, in the order of calls."""
