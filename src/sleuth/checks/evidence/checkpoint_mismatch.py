"""Why a checkpoint and a model do not go together: what differs, grouped by the likely reason, and the line that mends it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sleuth.core.observation import Entry, Misfit
from sleuth.core.words import counted

# Who puts these before every name.
WRAPPERS = {
    "module.": "DataParallel or DistributedDataParallel",
    "_orig_mod.": "torch.compile",
    "model.": "a module around it, such as Lightning's",
    "net.": "a module around it",
    "state_dict.": "a module around it",
}
SHOWN = 3


@dataclass(frozen=True)
class Reason:
    kind: str  # prefix, width, renamed, missing, unexpected
    count: int  # of tensors
    what: str  # a clause
    fix: str  # begins with a verb


def reasons(misfit: Misfit) -> list[Reason]:
    """The one that accounts for most tensors first."""
    missing, unexpected = list(misfit.missing), list(misfit.unexpected)
    found: list[Reason] = []
    pairs = [(one, other) for one, other in misfit.reshaped]
    prefixed = _prefixed(missing, unexpected)
    if prefixed is not None:
        prefix, extra, same = prefixed
        found.append(_prefix(misfit, prefix, extra, len(same)))
        pairs += [(one, other) for one, other in same if one.shape and other.shape and one.shape != other.shape]
        names = {entry.name for pair in same for entry in pair}
        missing, unexpected = ([e for e in some if e.name not in names] for some in (missing, unexpected))
    if pairs:
        found.append(_width(misfit, pairs))
    renamed = _renamed(missing, unexpected)
    if renamed:
        found.append(_renaming(misfit, renamed))
        names = {name for two in renamed for name in two}
        missing, unexpected = ([e for e in some if e.name not in names] for some in (missing, unexpected))
    found += _left(misfit, missing, unexpected)
    return sorted(found, key=lambda r: (-r.count, r.kind != "prefix"))


def _prefixed(missing: list[Entry], unexpected: list[Entry]) -> tuple[str, bool, list[tuple[Entry, Entry]]] | None:
    """A prefix that the names of one side carry and those of the other lack, whether it is the checkpoint's, and the pairs
    (checkpoint, model) that it makes."""
    for some, others, extra in ((unexpected, missing, True), (missing, unexpected, False)):
        plain = {e.name: e for e in others}
        for prefix in _prefixes({e.name for e in some}):
            same = [(e, plain[n]) for e in some if e.name.startswith(prefix) and (n := e.name.removeprefix(prefix)) in plain]
            # A few that are missing for another reason do not speak against it.
            if 2 * len(same) > max(len(missing), 1):
                return prefix, extra, [pair if extra else (pair[1], pair[0]) for pair in same]
    return None


def _call(owner: str, misfit: Misfit, state: str, *, strict: bool = True) -> str:
    given = f"list({state}.items())" if misfit.pairs else state
    loosely = misfit.by_file or "strict=False"
    return f"{owner}.{misfit.verb}({given}{'' if strict else f', {loosely}'})"


def _prefix(misfit: Misfit, prefix: str, extra: bool, count: int) -> Reason:
    if extra:
        what = f"names in the checkpoint begin with {prefix!r}{_by(prefix)}, and those of {misfit.into} do not"
        load = f"{{k.removeprefix({prefix!r}): v for k, v in {_items(misfit)}}}"
        if misfit.by_file:
            return Reason(
                "prefix", count, what, f"Save the part alone, or load the file into a model that holds {misfit.into} so"
            )
        return Reason("prefix", count, what, f"Take the prefix away: {_call(misfit.owner, misfit, load)}")
    what = f"names in {misfit.into} begin with {prefix!r}{_by(prefix)}, and those of the checkpoint do not"
    inner = f"{misfit.owner}.{prefix.rstrip('.')}"
    return Reason("prefix", count, what, f"Load it into what is inside: {_call(inner, misfit, misfit.state)}")


def _prefixes(names: set[str]) -> Iterator[str]:
    """That most names share, the longest first."""
    heads: Counter[str] = Counter()
    for name in names:
        parts = name.split(".")
        heads.update(".".join(parts[:depth]) + "." for depth in range(1, len(parts)))
    shared = [head for head, count in heads.items() if 2 * count > len(names)]
    yield from sorted(shared, key=lambda head: (head not in WRAPPERS, -len(head)))


def _by(prefix: str) -> str:
    parts = [WRAPPERS.get(f"{word}.") for word in prefix.split(".") if word]
    known = [p for p in parts if p]
    return f" (from {' and '.join(dict.fromkeys(known))})" if known else ""


def _items(misfit: Misfit) -> str:
    """`state.items()`, of whatever the user's line hands over."""
    state = misfit.state
    return f"{state if state.replace('.', '').replace('_', '').isalnum() or state.endswith((')', ']')) else f'({state})'}.items()"


def _width(misfit: Misfit, pairs: list[tuple[Entry, Entry]]) -> Reason:
    saved, own = pairs[0]
    layers = list(dict.fromkeys(one.name.rpartition(".")[0] or one.name for one, _ in pairs))
    sizes = [f"{one.name} is {one.shape} in the checkpoint and {other.shape} in the model" for one, other in pairs]
    what = f"{counted(len(pairs), 'tensor')} of other sizes: {_few(sizes, 2)}"
    outputs = saved.shape and own.shape and saved.shape[1:] == own.shape[1:]
    build = f"Build {misfit.into} as it was when it was saved"
    if outputs and saved.shape and own.shape:
        build += f" ({saved.shape[0]} instead of {own.shape[0]} in {layers[0]})"
    starts = ", ".join(repr(f"{layer}.") for layer in layers[:SHOWN])
    cure = misfit.state if misfit.by_file else f"{{k: v for k, v in {_items(misfit)} if not k.startswith(({starts},))}}"
    few = f"; to leave {_few(layers, SHOWN)} out and train that anew: {_call(misfit.owner, misfit, cure, strict=False)}"
    return Reason("width", len(pairs), what, build + (few if len(layers) <= SHOWN else ""))


def _renamed(missing: list[Entry], unexpected: list[Entry]) -> list[tuple[str, str]]:
    """(checkpoint, model): the same end of the name and the same shape, and only one such on either side."""
    pairs: list[tuple[str, str]] = []
    left = list(unexpected)
    for depth in range(6, 0, -1):
        taken = {name for pair in pairs for name in pair}
        mine = _by_ending((e for e in missing if e.name not in taken), depth)
        theirs = _by_ending((e for e in left if e.name not in taken), depth)
        for ending, entries in mine.items():
            others = theirs.get(ending, [])
            # By equal endings and shapes alone the order decides, which only holds when all of them pair off.
            in_order = depth == 1 and len(missing) == len(unexpected)
            if len(others) == len(entries) and (len(entries) == 1 or in_order):
                pairs += [(o.name, e.name) for o, e in zip(others, entries, strict=True)]
    return pairs


def _by_ending(entries: Iterable[Entry], depth: int) -> dict[tuple[str, tuple[int, ...] | None], list[Entry]]:
    found = defaultdict(list)
    for entry in entries:
        parts = entry.name.split(".")
        if len(parts) >= depth:
            found[".".join(parts[-depth:]), entry.shape].append(entry)
    return found


def _renaming(misfit: Misfit, renamed: list[tuple[str, str]]) -> Reason:
    heads = dict.fromkeys(_heads(one, other) for one, other in renamed)
    table = ", ".join(f"{one!r}: {other!r}" for one, other in list(heads)[:SHOWN])
    more = ", …" if len(heads) > SHOWN else ""
    pairs = [f"{one.rstrip('.')} is {other.rstrip('.')} in the model" for one, other in heads]
    what = f"{counted(len(renamed), 'tensor')} under other names: {_few(pairs, SHOWN)}"
    rename = "next((new + k.removeprefix(old) for old, new in renamed.items() if k.startswith(old)), k)"
    load = f"{{{rename}: v for k, v in {_items(misfit)}}}"
    fix = f"Rename them as you load: renamed = {{{table}{more}}}; {_call(misfit.owner, misfit, load)}"
    if misfit.by_file:
        fix = f"Let {misfit.into} hold its layers under the names, and in the order, of the model that was saved"
    return Reason("renamed", len(renamed), what, fix)


def _heads(one: str, other: str) -> tuple[str, str]:
    """Without what both end with."""
    mine, theirs = one.split("."), other.split(".")
    while mine and theirs and mine[-1] == theirs[-1]:
        mine.pop()
        theirs.pop()
    return "".join(f"{word}." for word in mine), "".join(f"{word}." for word in theirs)


def _left(misfit: Misfit, missing: list[Entry], unexpected: list[Entry]) -> Iterator[Reason]:
    loose = _call(misfit.owner, misfit, misfit.state, strict=False)
    if missing:
        what = f"{counted(len(missing), 'tensor')} that the checkpoint has not: {_few(_layers(missing), SHOWN)}"
        fix = f"Build {misfit.into} without them, or let them start anew: {loose}"
        yield Reason("missing", len(missing), what, fix)
    if unexpected:
        what = f"{counted(len(unexpected), 'tensor')} that {misfit.into} has not: {_few(_layers(unexpected), SHOWN)}"
        fix = f"Build {misfit.into} with them, as it was when it was saved; if they are not wanted, {loose}"
        yield Reason("unexpected", len(unexpected), what, fix)


def _layers(entries: list[Entry]) -> list[str]:
    return list(dict.fromkeys(e.name.rpartition(".")[0] or e.name for e in entries))


def _few(things: list[str], most: int) -> str:
    more = f" and {len(things) - most} more" if len(things) > most else ""
    return ", ".join(things[:most]) + more
