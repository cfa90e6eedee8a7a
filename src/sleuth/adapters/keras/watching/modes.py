"""In which mode the model and those of its layers are called that act differently in training: heard in their `call`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from keras.src.backend.common import global_state
from keras.src.backend.common.symbolic_scope import in_symbolic_scope

from sleuth.adapters.keras.families import family_of
from sleuth.adapters.keras.model_parts import layers
from sleuth.adapters.keras.patches import replaced
from sleuth.adapters.keras.user_lines import spot_now
from sleuth.adapters.listening.patches import attempt
from sleuth.core.location import Spot
from sleuth.core.observation import Modes

MODAL = ("dropout", "batchnorm")
Tell = Callable[[bool], None]  # in training mode?


class ModeHearing:
    """`called` is told the mode of every call of the model; `latest` says which layers were in which."""

    def __init__(self, model: Any, called: Tell, failed: Callable[[Exception], None]) -> None:
        self._model, self._called, self._failed = model, called, failed
        self._modal: dict[int, tuple[str, str, Any]] = {}
        self._flags: dict[str, bool] = {}
        self._depth = 0
        self._asked: bool | None = None  # the mode that the model is called in now
        self.wired: Spot | None = None  # where a layer was told to act as in training, whatever the model is told

    @contextmanager
    def listening(self) -> Iterator[None]:
        found = [(path, family_of(layer), layer) for path, layer in layers(self._model)]
        # A dropout that drops nothing, such as attention brings along, has no mode.
        acting = [one for one in found if one[1] in MODAL and bool(getattr(one[2], "rate", True))]
        self._modal = {id(layer): (path, family, layer) for path, family, layer in acting}
        classes = {type(layer) for _, _, layer in self._modal.values()} | {type(self._model)}
        with ExitStack() as stack:
            for owner in classes:
                stack.enter_context(replaced(owner, "call", self._calling))
            yield

    def _calling(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if not attempt(self._failed, self._begins, layer, kwargs):
                return plain(layer, *args, **kwargs)
            try:
                output = plain(layer, *args, **kwargs)
            finally:
                self._depth = 0
            attempt(self._failed, self._ended)
            return output

        return call

    def _begins(self, layer: Any, kwargs: Any) -> bool:
        """Is this a call of the model itself?"""
        if layer is self._model and not self._depth and not in_symbolic_scope():
            self._depth, self._flags = 1, {}
            self._asked = kwargs.get("training", _context())
            return True
        if self._depth and id(layer) in self._modal:
            self._flags[self._modal[id(layer)][0]] = _mode(kwargs)
            if kwargs.get("training") and not self._asked:
                self.wired = spot_now()
        return False

    def _ended(self) -> None:
        # A model without such layers acts the same in both modes.
        mode = self._asked
        self._called(bool(mode) if mode is not None else any(self._flags.values()) or not self._flags)

    def latest(self, step: int, *, root: bool, graph: bool) -> Modes:
        heard = {path: on for path, on in self._flags.items()}
        kinds = {path: (family, layer) for path, family, layer in self._modal.values()}
        # Keras itself runs a normalisation that is not trainable as in inference.
        frozen = tuple(path for path in heard if kinds[path][0] == "batchnorm" and not kinds[path][1].trainable)
        return Modes(
            step,
            graph=graph,
            root=root,
            active=tuple(path for path, on in heard.items() if on),
            resting=tuple(path for path, on in heard.items() if not on),
            frozen=frozen,
            families={path: kinds[path][0] for path in heard},
        )


def _mode(kwargs: Any) -> bool:
    return bool(kwargs["training"]) if kwargs.get("training") is not None else bool(_context())


def _context() -> bool | None:
    """What the outermost call said, which layers go by that were told nothing."""
    found = global_state.get_global_attribute("current_call_ctx")
    return None if found is None else found.get_value("training")
