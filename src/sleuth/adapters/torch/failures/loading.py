"""Data that cannot be read or put together into a batch."""

import re

from sleuth.adapters.torch.failures.scene import Explained, Patterns, Scene


def _unequal(match: re.Match[str], scene: Scene) -> Explained:
    one, other = match.groups()
    advice = (
        "bring the samples to one shape in __getitem__ (crop, resize, pad), or pad them in a collate_fn of your own: "
        "torch.nn.utils.rnn.pad_sequence(xs, batch_first=True)"
    )
    return Explained("shape", f"samples of one shape, {one}", other, advice)


def _unknown(match: re.Match[str], scene: Scene) -> Explained:
    kind = match[1].rpartition(".")[2]
    cure = "return a number or a tensor instead of None" if kind == "NoneType" else f"turn {kind} into a tensor in __getitem__"
    return Explained("type", "tensors, arrays, numbers, dicts or lists", kind, f"{cure}, or give the loader a collate_fn")


def _ragged(match: re.Match[str], scene: Scene) -> Explained:
    return Explained(
        "shape", "lists of one length", "lists of several", "pad the lists to one length in __getitem__ or in a collate_fn"
    )


def _storage(match: re.Match[str], scene: Scene) -> Explained:
    return Explained("shape", "memory of its own", "a view of other memory", "return x.clone() from __getitem__")


LOADING = Patterns(
    (
        (r"stack expects each tensor to be equal size, but got (\[[\d, ]*\]) at entry 0 and (\[[\d, ]*\])", _unequal),
        (r"batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class '([\w.]+)'>", _unknown),
        (r"each element in list of batch should be of equal size", _ragged),
        (r"Trying to resize storage that is not resizable", _storage),
    )
)
