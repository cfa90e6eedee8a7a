"""A compiled function of the user's, twice: as it is, and one that returns statistics as well."""

import contextlib
import functools
import types
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import jax

from sleuth.adapters.jax.watching import measuring
from sleuth.adapters.jax.watching.channel import Channel, Collector, Part
from sleuth.adapters.jax.watching.gradient_patches import HEARING
from sleuth.adapters.jax.watching.naming import leaves_of, pick
from sleuth.adapters.jax.watching.second_form import JIT, SecondForm, second_form

if TYPE_CHECKING:
    from sleuth.adapters.jax.watching.listener import JaxListener
    from sleuth.core.location import Location

# Batches of another shape come once an epoch: nothing is compiled for them unless they stay.
PATIENCE = 8
NO_GRADIENT = "no gradient was met in it"

# Functions in which gradients were met: JAX keeps what it has traced, and a second `jit` of one may not call it again.
_LEARNERS: weakref.WeakSet[Any] = weakref.WeakSet()

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Call = Callable[["Compiled", tuple[Any, ...], dict[str, Any]], Any]


class Compiled:
    """Stands for what `jax.jit` returns. While nobody listens it is that function and a call in Python more."""

    call: ClassVar[Call | None] = None  # whoever listens

    def __init__(self, plain: Any, fun: Callable[..., Any], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, plain, updated=())
        self.plain = plain
        self.fun = fun
        self.options = dict(options)
        self.has_parts = False  # gradients or updates were met in it
        self.is_learner = _is_learner(fun)
        # JAX will not trace it again, and so it says nothing of itself.
        self.is_known = self.is_learner or bool(getattr(plain, "_cache_size", int)())
        self.parts: tuple[Part, ...] = ()
        self.order: dict[Part, list[int]] = {}  # of the weights, as the model uses them
        self.silent: str | None = None  # why it has nothing to tell
        self.deaf_inside: str | None = None  # why nothing is told from inside its loss
        self.owners: list[JaxListener | None] = []  # of each part
        self.runs = {True: 0, False: 0}  # with statistics, and without
        self.first: Any = None  # what its first call returned, until somebody wants to know
        self.first_given: Arguments | None = None  # and what it was given
        self.optimiser: Any = None  # whose updates it applies, where that was told
        self.backward: Location | None = None  # the line that does something with its gradient, or else takes it
        self.begun: Location | None = None  # where it begins the state of that optimiser anew, at every call
        self._forms: dict[Any, SecondForm] = {}
        self._dynamic: tuple[bool, ...] = ()
        self._strange = 0
        if "out_shardings" in self.options:
            self.options["out_shardings"] = (self.options["out_shardings"], None)
        self.told = JIT(self._collecting(fun), **self.options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        listens = Compiled.call
        return self.plain(*args, **kwargs) if listens is None else listens(self, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "plain":  # being copied: there is nothing yet to ask
            raise AttributeError(name)
        return getattr(self.plain, name)

    @property
    def keeps_its_arguments(self) -> bool:
        """What a step takes the memory of cannot be compared with what the next one is given."""
        return all(self.options.get(word) in (None, (), []) for word in ("donate_argnums", "donate_argnames"))

    def __copy__(self) -> "Compiled":
        return self

    def __deepcopy__(self, memo: Any) -> "Compiled":
        return self

    def __reduce__(self) -> Any:
        return self.plain.__reduce__()

    def __repr__(self) -> str:
        return repr(self.plain)

    def within(self, args: tuple[Any, ...], kwargs: dict[str, Any], collector: Collector) -> Any:
        """Called while the second executable of another one is traced: its values become that one's."""
        output, channel = self.told(*args, **kwargs)
        losses = tuple(None if part.loss is None else leaf_at(output, part.loss) for part in channel.parts)
        collector.nested(channel, losses)
        return output

    def look_into(self, given: Arguments) -> None:
        """Of a function that was compiled before anybody listened: are gradients met in it?"""
        self.is_known = False
        self.has_parts = self._prepare(given)
        if self.silent == NO_GRADIENT:
            self.silent = None

    def is_ready(self, given: Arguments) -> bool:
        """May this call be looked at? The first time, the second form is traced, before anything is at stake."""
        if self._signature(given) in self._forms:
            self._strange = 0
            return True
        self._strange += 1
        if self._forms and self._strange < PATIENCE:
            return False
        self._strange = 0
        return self._prepare(given)

    def looked_back(self, given: Arguments) -> Channel | None:
        """What there is to tell of a call that was made before, unless it took the memory of what it was given."""
        form = self.form_for(given)
        if form is None or form.look is None:
            return None
        taken = any(getattr(leaf, "is_deleted", lambda: False)() for leaf in form.inputs(given))
        return None if taken else self.look(form, given)

    def look(self, form: SecondForm, given: Arguments) -> Channel | None:
        try:
            return form.look(given).measured() if form.look is not None else None
        except Exception as error:  # where the user lets JAX raise at NaN, the plain one raises too
            self.silent = f"its second form could not be run: {_first_line(error)}"
            return None

    def form_for(self, given: Arguments) -> SecondForm | None:
        return self._forms.get(self._signature(given))

    def _prepare(self, given: Arguments) -> bool:
        try:
            form = self._second_form(given)
        except Exception as error:  # a mistake of the user's own comes again when the plain one is called
            self.silent = f"its second form could not be traced: {_first_line(error)}"
            return False
        if not form.parts:
            self.silent = None if self._forms else NO_GRADIENT
            return False
        self.parts, self.order, self.owners = form.parts, form.order, []
        with contextlib.suppress(TypeError):  # not everything that can be called can be held so
            _LEARNERS.add(self.fun)
        self._forms[self._signature(given)] = form
        return True

    def _second_form(self, given: Arguments) -> SecondForm:
        outer, HEARING.looks_inside = HEARING.looks_inside, True
        try:
            return second_form(self.told.trace(*given[0], **given[1]), self._dynamic)
        except Exception as error:
            self.deaf_inside = _first_line(error)
        finally:
            HEARING.looks_inside = outer
        # Not everything can be traced by itself: then its gradients are told, and nothing from inside.
        return second_form(self.told.trace(*given[0], **given[1]), self._dynamic)

    def _signature(self, given: Arguments) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(given)
        dynamic = self._dynamic if len(self._dynamic) == len(leaves) else (True,) * len(leaves)
        return tree, tuple(_kind(leaf, d) for leaf, d in zip(leaves, dynamic, strict=True))

    def _collecting(self, fun: Callable[..., Any]) -> Callable[..., tuple[Any, Channel]]:
        @functools.wraps(fun)
        def collecting(*args: Any, **kwargs: Any) -> tuple[Any, Channel]:
            outer, marked = HEARING.collector, HEARING.marked
            inputs = leaves_of((args, kwargs))
            self._dynamic = tuple(isinstance(leaf, jax.core.Tracer) for _, leaf in inputs)
            HEARING.collector = collector = Collector(inputs)
            try:
                output = fun(*args, **kwargs)
                self.optimiser = collector.optimiser or self.optimiser
                self.backward = collector.asked_at or collector.taken_at
                if collector.begun is not None and collector.begun[0] is getattr(self.optimiser, "update", None):
                    self.begun = collector.begun[1]
                return output, collector.channel(output, here=measuring.on_host())
            finally:
                HEARING.collector, HEARING.marked = outer, marked

        return collecting


def _is_learner(fun: Any) -> bool:
    try:
        return fun in _LEARNERS
    except TypeError:
        return False


def _kind(leaf: Any, dynamic: bool) -> Any:
    shape = getattr(leaf, "shape", None)
    if shape is not None:
        return tuple(shape), str(getattr(leaf, "dtype", "")), bool(getattr(leaf, "weak_type", False))
    return type(leaf) if dynamic or not isinstance(leaf, int | str) else (type(leaf), leaf)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"


def leaf_at(tree: Any, path: Any) -> Any:
    try:
        return pick(tree, path)
    except (LookupError, AttributeError, TypeError):
        return next((leaf for at, leaf in leaves_of(tree) if at == path), None)
