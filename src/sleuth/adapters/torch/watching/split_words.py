"""What the user calls the data of the moment: `for split in ("train", "val")`, `evaluate(model, "test")`.

A word alone may be a setting that nothing depends on. A variable that was seen to hold both kinds of words tells them apart.
"""

from types import FrameType

from sleuth.adapters.torch.place import is_users
from sleuth.core.observation import Split

WORDS = {
    **dict.fromkeys(("train", "training", "trn"), Split.TRAIN),
    **dict.fromkeys(("val", "valid", "validation", "dev", "test", "eval"), Split.VALIDATION),
}
# A model's own functions may lie between the loop and us.
MOST_FRAMES = 24
MOST_REMEMBERED = 64

Variable = tuple[int, str]  # number of the function, name


class SplitWords:
    def __init__(self) -> None:
        self._seen: dict[Variable, set[Split]] = {}

    def heard(self, frame: FrameType | None) -> tuple[Variable, Split] | None:
        """The innermost variable of the user's functions that holds such a word."""
        for _ in range(MOST_FRAMES):
            if frame is None:
                return None
            if is_users(frame.f_code.co_filename) and (found := _in(frame)) is not None:
                variable = (id(frame.f_code), found[0])
                if len(self._seen) < MOST_REMEMBERED:
                    self._seen.setdefault(variable, set()).add(found[1])
                return variable, found[1]
            frame = frame.f_back
        return None

    def tells(self, variable: Variable) -> bool:
        return len(self._seen.get(variable, ())) > 1


def _in(frame: FrameType) -> tuple[str, Split] | None:
    """Only a function's own names: those of a module are its settings. None also where there are several."""
    names = frame.f_code.co_varnames if frame.f_code.co_name != "<module>" else frame.f_code.co_names
    values = frame.f_locals
    found = [(name, WORDS[value.lower()]) for name in names if type(value := values.get(name)) is str and value.lower() in WORDS]
    return found[0] if len({split for _, split in found}) == 1 else None
