"""Is what goes backward a loss that the model returned, as it is or after a few lines on that one number?"""

from collections.abc import Sequence

from torch import nn

from sleuth.adapters.common.call_form import form_of
from sleuth.adapters.torch.arrays import to_numpy
from sleuth.adapters.torch.pass_listener import is_tensor
from sleuth.adapters.torch.returned_loss import ReturnedLoss
from sleuth.adapters.torch.watching.origin.tape import Tape
from sleuth.adapters.torch.watching.recomputed_loss import target_of
from sleuth.adapters.torch.watching.reservoir import is_plain
from sleuth.adapters.torch.watching.step_memory import Memory, View


def returned_loss(memory: Memory, tapes: Sequence[Tape], model: nn.Module) -> ReturnedLoss | None:
    """Of a step that calls the model once."""
    if isinstance(memory.root, View):
        path, tape = memory.root.path, None
    elif memory.root is None and tapes and (found := _path(tapes[0])) is not None:
        path, tape = found, tapes[0]
    else:
        return None
    call = memory.forwards[0]
    if not is_plain((call.args, dict(call.kwargs))):
        return None
    targets = [t for heard in memory.losses if (t := target_of(heard)) is not None and not t.requires_grad]
    compared = [to_numpy(t) for t in targets]
    form = form_of(call.args, call.kwargs, is_tensor, model.forward, compared, to_numpy)
    return None if form is None else ReturnedLoss(form, path, tape)


def _path(tape: Tape) -> str | None:
    """Of the one number of the output that the tape goes on with; nothing else but constants may go into it."""
    used = set(tape.outputs.values())
    if len(used) != 1 or next(iter(used))[0] != 0:
        return None
    path = next(iter(used))[1]
    constant = all(s.value is not None and s.value.numel() == 1 and s.parameter is None for s in tape.leaves.values())
    opaque = any(call.opaque for call in tape.calls)
    return path if tape.single == tape.outputs.keys() and constant and not opaque else None
