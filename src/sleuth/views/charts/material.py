"""What charts are made of, read once."""

from functools import cached_property

import numpy as np

from sleuth.core.observation import Role
from sleuth.core.recording.recording import (
    Curve,
    Grid,
    Histograms,
    Recording,
    Table,
    empty_grid,
    empty_histograms,
    empty_table,
)
from sleuth.core.report import Report

# Moments at which the values of all tensors are counted: more cannot be told apart on a screen.
MOMENTS = 120


class Material:
    def __init__(self, recording: Recording | None, report: Report | None = None) -> None:
        self.recording, self.report = recording, report
        self._tables: dict[Role, Table] = {}
        self._histograms: dict[Role, Histograms] = {}

    @cached_property
    def curves(self) -> dict[str, Curve]:
        return {} if self.recording is None else self.recording.curves()

    @cached_property
    def silent(self) -> Grid:
        return empty_grid() if self.recording is None else self.recording.silent()

    def table(self, role: Role) -> Table:
        if role not in self._tables:
            self._tables[role] = empty_table() if self.recording is None else self.recording.statistics(role)
        return self._tables[role]

    def rms(self, role: Role) -> np.ndarray:
        """Steps × tensors."""
        with np.errstate(invalid="ignore"):
            return self.table(role).column("rms")

    def histograms(self, role: Role) -> Histograms:
        if role not in self._histograms:
            found = empty_histograms() if self.recording is None else self.recording.histograms(role, MOMENTS)
            self._histograms[role] = found
        return self._histograms[role]
