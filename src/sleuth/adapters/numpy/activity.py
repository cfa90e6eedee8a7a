"""What one listened pass says about the signal: a Frame of all activations and Units of the activation layers."""

from collections.abc import Iterator

from sleuth.adapters.common.activity import frame_of, units_of, usual_axis
from sleuth.adapters.numpy.pass_listener import Listener, is_array
from sleuth.core.observation import Absent, Observation, Units
from sleuth.core.runtime.tree import leaves


def activity(listener: Listener, step: int) -> Iterator[Observation]:
    named = [(made.path, made.values) for made in listener.made]
    if not named:
        named = [(path or "output", a) for out in listener.outputs[:1] for path, a in leaves(out, is_array)]
    yield from frame_of(step, named)
    found = [made for made in listener.made if made.activation and made.family != "softmax" and made.values.ndim >= 2]
    yield from (units_of(step, made.path, made.activation, made.values, usual_axis(made.values)) for made in found)
    if listener.outputs and not found:
        yield Absent(Units, "no layer and no function of the model is known as an activation (relu, sigmoid, tanh, …)")
