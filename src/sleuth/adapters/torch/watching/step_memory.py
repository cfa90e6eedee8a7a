"""What is remembered of the step that is going on: how the model was called and what the losses were given. By reference,
until the step ends."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from weakref import ReferenceType, ref

import torch

from sleuth.adapters.torch.watching.sample_indices import tensors_of
from sleuth.core.runtime.tree import leaves, map_arrays

Weak = ReferenceType[torch.Tensor]


class Forward:
    """One call of the model. What it returned is not kept alive."""

    __slots__ = ("args", "autocast", "kwargs", "outputs", "part", "random", "versions")

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], random: torch.Tensor | None) -> None:
        self.args, self.kwargs = args, kwargs
        self.part = ""  # the one that was called, where several models are watched as one
        self.random = random  # None: the model draws nothing
        try:
            self.versions = self._versions() if kwargs else [t._version for t in args]
        except (AttributeError, RuntimeError):  # it is given more than arrays; an array of inference mode has no version
            self.versions = self._versions()
        self.autocast = self._autocast() if torch._C._is_any_autocast_enabled() else None
        self.outputs: list[tuple[str, Weak]] = []

    @property
    def inputs(self) -> list[torch.Tensor]:
        return [*tensors_of(self.args), *tensors_of(self.kwargs)]

    def _versions(self) -> list[int]:
        try:
            if not self.kwargs:
                return [t._version for t in tensors_of(self.args)]
            return [t._version for t in self.inputs]
        except RuntimeError:  # a tensor of inference mode has none
            return []

    def _autocast(self) -> tuple[str, torch.dtype] | None:
        inputs = self.inputs
        kind = inputs[0].device.type if inputs else "cpu"
        return (kind, torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else None

    @property
    def unchanged(self) -> bool:
        """Are the inputs as the model was given them?"""
        return self.versions == self._versions()

    @property
    def size(self) -> int | None:
        """How many samples, where they lie along the first axis."""
        return next((t.shape[0] for t in self.inputs if t.dim()), None)

    def returned(self, output: Any) -> None:
        if isinstance(output, torch.Tensor):
            self.outputs = [("", ref(output))]
        else:
            self.outputs = [(path, ref(t)) for path, t in leaves(output, _is_tensor)]


class View(NamedTuple):
    """An argument of a loss that is the model's output, seen through size, stride and offset."""

    call: int  # which call of the model
    path: str  # in what it returned
    size: tuple[int, ...] | None = None  # None: as it is
    stride: tuple[int, ...] = ()
    offset: int = 0


class Other(NamedTuple):
    """An argument of a loss that was computed from the output in between."""

    shape: tuple[int, ...]


class LossHeard:
    """One call of a loss function; of what belongs to the graph only the way to find it again is kept."""

    __slots__ = ("args", "kwargs", "name", "returned")

    def __init__(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: torch.Tensor, made: "Memory"
    ) -> None:
        self.name = name
        self.args = [made.without_graph(a) if isinstance(a, torch.Tensor) and a.requires_grad else a for a in args]
        self.kwargs = {key: made.without_graph(a) for key, a in kwargs.items()} if kwargs else {}
        self.returned = ref(returned)

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [a for a in (*self.args, *self.kwargs.values()) if isinstance(a, torch.Tensor)]

    @property
    def can_be_repeated(self) -> bool:
        return not any(isinstance(a, Other) for a in (*self.args, *self.kwargs.values()))


# A loop may call the model often before it goes backward: an agent's episode. The latest calls count.
MOST_CALLS = 4


class Memory:
    """From one backward to the next."""

    def __init__(self) -> None:
        self.forwards: list[Forward] = []
        self.losses: list[LossHeard] = []
        self.cut = False  # earlier calls were forgotten
        # The latest loss that went backward, where nobody has looked up yet which one it is: see `backward`.
        self.latest: Weak | None = None
        self.root: int | View | None = None  # what went backward: what a loss returned, by its number, or an output itself

    def forward(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, draws: bool = True) -> None:
        if len(self.forwards) >= MOST_CALLS:
            del self.forwards[0]
            self.losses.clear()
            self.cut = True
        # Five kilobytes, and by far the most that a step costs here.
        self.forwards.append(Forward(args, kwargs, torch.default_generator.get_state() if draws else None))

    def output(self, output: Any) -> None:
        if self.forwards:
            self.forwards[-1].returned(output)

    def loss(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> None:
        if self.forwards and len(self.losses) < MOST_CALLS and isinstance(returned, torch.Tensor) and returned.requires_grad:
            self.losses.append(LossHeard(name, args, kwargs, returned, self))

    def without_graph(self, thing: Any) -> Any:
        if not isinstance(thing, torch.Tensor) or not thing.requires_grad:
            return thing
        for number, call in enumerate(self.forwards):
            for path, weak in call.outputs:
                output = weak()
                if thing is output:
                    return View(number, path)
                if output is not None and _is_view(thing, output):
                    offset = int(thing.storage_offset()) - int(output.storage_offset())
                    return View(number, path, tuple(thing.shape), thing.stride(), offset)
        return Other(tuple(thing.shape))

    def backward(self, loss: torch.Tensor) -> None:
        self.root = None
        for number, call in enumerate(self.forwards):
            for path, weak in call.outputs:
                if weak() is loss:
                    self.root = View(number, path)
                    return
        for number, heard in enumerate(self.losses):
            if heard.returned() is loss:
                self.root = number

    @property
    def inputs(self) -> list[torch.Tensor]:
        return [t for call in self.forwards for t in call.inputs]


# Never written to.
NOTHING = Memory()


def detached(tree: Any) -> Any:
    return map_arrays(tree, lambda t: t.detach().clone(), _is_tensor)


def outputs_of(call: Forward) -> Iterator[tuple[str, torch.Tensor]]:
    """As far as somebody still holds them."""
    for path, weak in call.outputs:
        tensor = weak()
        if tensor is not None:
            yield path, tensor


def _is_view(thing: torch.Tensor, output: torch.Tensor) -> bool:
    if thing.dtype != output.dtype or thing.device != output.device or thing.layout is not torch.strided:
        return False
    return thing.untyped_storage().data_ptr() == output.untyped_storage().data_ptr() and output.is_contiguous()


def _is_tensor(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor)
