"""What the checks were shown, as a recording: for reports of what nobody wrote down. Long courses are thinned."""

from sleuth.core.contract.scene import Scene
from sleuth.core.errors import UnusableInput
from sleuth.core.history import History
from sleuth.core.observation import Evaluation, Memory, Role, Step, Units
from sleuth.core.recording.recorded import curves_of, grid_of_silent, histograms_of, table_of_frames
from sleuth.core.recording.recording import Curve, Grid, Histograms, Recording, Table, evenly


class Remembered(Recording):
    def __init__(self, history: History) -> None:
        self._history = history

    def curves(self) -> dict[str, Curve]:
        return curves_of(*(self._history.many(kind) for kind in (Step, Evaluation, Memory)))

    def statistics(self, role: Role) -> Table:
        return table_of_frames(self._history.many(role))

    def silent(self) -> Grid:
        return grid_of_silent(self._history.many(Units))

    def histograms(self, role: Role, most: int) -> Histograms:
        frames = [frame for frame in self._history.many(role) if frame.exponents is not None]
        return histograms_of([frames[place] for place in evenly(len(frames), most)])

    def scenes(self) -> tuple[int, ...]:
        return ()

    def scene(self, number: int) -> Scene:
        raise UnusableInput("no step was kept: this is not of a recorded run.")
