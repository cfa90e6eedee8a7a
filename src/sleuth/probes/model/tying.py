"""Looks for layers that begin with the numbers of an embedding without sharing them."""

from collections.abc import Iterator

import numpy as np

from sleuth.core.errors import Unsupported
from sleuth.core.observation import Observation, Parameter
from sleuth.core.stage import Stage
from sleuth.core.trial import CopiedWeight, Tying
from sleuth.probes.lab.probe import Lab, probe


@probe(title="Comparing the output layer with the embedding", stage=Stage.MODEL, rank=4, emits=(Tying,))
def tying(lab: Lab) -> Iterator[Observation]:
    parameters = [p for p in lab.architecture.parameters if p.trainable and p.optimised is not False]
    tables = [p for p in parameters if p.family == "embedding" and len(p.shape) == 2]
    pairs = [(table, p) for table in tables for p in parameters if _fits(table, p)]
    if not pairs:
        raise Unsupported("no trained layer has the shape of an embedding's table")
    yield Tying(tuple(CopiedWeight(p.path, table.path, p.size) for table, p in pairs if _is_copy(lab, table, p)))


def _fits(table: Parameter, other: Parameter) -> bool:
    """Equal tables of two embeddings, or equal layers of a stack, are copied on purpose; an output layer hardly ever."""
    return other.family == "linear" and sorted(other.shape) == sorted(table.shape)


def _is_copy(lab: Lab, table: Parameter, other: Parameter) -> bool:
    if other.tied_to is not None:
        return False
    first, second = (lab.adapter.values(lab.bench.parameter(p.path)) for p in (table, other))
    if not np.ptp(first) or np.shares_memory(first, second):
        return False
    turned = (second, second.T) if second.shape == first.shape else (second.T,)
    return any(np.array_equal(first, way) for way in turned if way.shape == first.shape)
