"""After the script's own traceback: what an exception that ended it was about."""

import re
from collections.abc import Callable, Iterable

from sleuth.core.observation import Crash, Observation
from sleuth.core.runtime.place import innermost, is_users

Explain = Callable[[BaseException], list[Observation]]

# Raised to leave a loop, not because something is wrong; also those that end a script from outside.
LEAVING = (KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration, StopAsyncIteration)
# What people, and the libraries that search hyperparameters, call an exception by which a training ends as it should.
MEANT = re.compile(
    r"Stop|Prun|Early|Interrupt|Cancel|Finish|Done|Exit|Complete|Converge|Break|Enough|Success|Reached|Quit|Preempt",
    re.IGNORECASE,
)
# What they call one that is none of these, though it is a class of their own.
TROUBLE = re.compile(r"Error|Fail|Invalid|Missing|Bad|Wrong|Unknown|Not|Corrupt|Mismatch|Problem|Illegal|Unsupported|Warning")
LONGEST = 300


def is_meant(error: BaseException) -> bool:
    """Was it raised on purpose, to end a training? One whose name says so, or a class of the user's own whose name does not speak
    of trouble."""
    kind = type(error)
    if isinstance(error, LEAVING) or kind.__module__.startswith("sleuth."):
        return True
    if kind.__module__ == "builtins" or TROUBLE.search(kind.__name__):
        return False
    return MEANT.search(kind.__name__) is not None or _is_users_own(error)


def explain_crash(error: BaseException | None, explain: Explain | Iterable[Explain] = (), *, steps: int = 0) -> list[Observation]:
    """A `Crash`, and before it what is known of its cause; nothing for an exception that was raised on purpose.

    `explain`: of the watch that was open, else of the adapters of the frameworks that the script imported. `steps`: so many were
    taken.
    """
    if error is None or is_meant(error):
        return []
    asked = [explain] if callable(explain) else list(explain)
    plain = Crash(steps, type(error).__name__, _first_line(error), None, innermost(error.__traceback__))
    crashes: list[Observation] = [plain]
    for one in _behind(error):
        for ask in asked:
            found = _asked(ask, one)
            if one is error:
                crashes = [o for o in found if isinstance(o, Crash)] or crashes
            if known := [o for o in found if not isinstance(o, Crash)]:
                return [*known, *crashes[:1]]
    return crashes[:1]


def _asked(ask: Explain, error: BaseException) -> list[Observation]:
    try:
        return ask(error)
    except Exception:  # a reading that fails must not hide what it reads
        return []


def _behind(error: BaseException) -> list[BaseException]:
    """The exception, and those that it was raised from: `raise TrainingError(…) from error`."""
    found = [error]
    while (cause := found[-1].__cause__) is not None and all(cause is not one for one in found):
        found.append(cause)
    return found


def _is_users_own(error: BaseException) -> bool:
    """Defined in the user's own code and raised there."""
    trace, file = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        trace = trace.tb_next
    module = type(error).__module__
    return is_users(file) and not module.startswith(("torch", "numpy"))


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:LONGEST] if text else ""
