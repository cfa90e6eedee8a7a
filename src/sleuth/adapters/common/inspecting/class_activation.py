"""Grad-CAM, once a framework has told what a layer put out and the slope of the scores by that."""

from collections.abc import Sequence

import numpy as np

from sleuth.core.contract.inspection import ClassActivation
from sleuth.core.errors import UnusableInput


def targets_of(target: int | Sequence[int] | None, scores: np.ndarray) -> np.ndarray:
    """One class a sample: as asked for, or the one with the highest score. `scores`: (samples, classes)."""
    samples, classes = scores.shape
    if target is None:
        return scores.argmax(axis=1).astype(np.int64)
    chosen = np.asarray(target, dtype=np.int64).reshape(-1)
    if len(chosen) not in (1, samples):
        raise UnusableInput(f"there are {len(chosen)} targets for {samples} samples: give one, or one a sample.")
    if ((chosen < 0) | (chosen >= classes)).any():
        raise UnusableInput(f"target={target} is not a class: the model has {classes} of them, from 0 to {classes - 1}.")
    return np.broadcast_to(chosen, (samples,)).copy()


def credited(
    path: str, targets: np.ndarray, scores: np.ndarray, values: np.ndarray, slopes: np.ndarray, image: np.ndarray
) -> ClassActivation:
    """`values` and `slopes`: (samples, channels, height, width). Each channel counts by the mean of its slope."""
    maps = np.maximum((slopes.mean(axis=(2, 3), keepdims=True) * values).sum(axis=1), 0)
    return ClassActivation(
        path=path,
        targets=tuple(int(t) for t in targets),
        scores=tuple(float(s) for s in scores[np.arange(len(targets)), targets]),
        maps=maps,
        enlarged=enlarged(maps, image.shape[2:]),
        image=image,
    )


def enlarged(maps: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    """Between the middles of cells in straight lines, as pictures are enlarged."""
    for axis, wanted in ((1, size[0]), (2, size[1])):
        places = np.clip((np.arange(wanted) + 0.5) * maps.shape[axis] / wanted - 0.5, 0, maps.shape[axis] - 1)
        low = np.floor(places).astype(int)
        high = np.minimum(low + 1, maps.shape[axis] - 1)
        share = (places - low).astype(maps.dtype).reshape((-1, 1) if axis == 1 else (-1,))
        maps = np.take(maps, low, axis) * (1 - share) + np.take(maps, high, axis) * share
    return maps
