"""A scratch copy of a checkout, with the edits, the data and the stand-ins that a script needs here; and a run in it."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.wild.lists import Edit, Script, Unfit, apply

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STANDINS = HERE / "standins"
SLEUTH = ROOT / "src"
LONGEST_SECONDS = 300
# Nothing is fetched, drawn on a screen or ordered by chance; one thread, because helpers and CI have few cores.
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUNBUFFERED": "1",
    "MPLBACKEND": "Agg",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "CUDA_VISIBLE_DEVICES": "",
}
LEFT_OUT = shutil.ignore_patterns(".git", "*.ipynb", "*.md", "*.png", "*.jpg", "*.gif", "*.pdf")


@dataclass(frozen=True)
class Outcome:
    """`code` None: the time was up. Lines of standard output with the second they came at."""

    code: int | None
    lines: tuple[tuple[float, str], ...]
    errors: str
    seconds: float

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)


class Workshop:
    """Makes scratch copies, always in the same place: a path that a script prints is the same in every run."""

    def __init__(
        self, checkouts: Path, python: str, place: Path, sleuth: Path = SLEUTH, longest: float = LONGEST_SECONDS
    ) -> None:
        self.checkouts, self.python, self.place, self.sleuth, self.longest = checkouts, python, place, sleuth, longest
        self.made = place / "made"  # data, once for all runs

    def missing(self, script: Script) -> bool:
        return not (self.checkouts / script.repository.folder).is_dir()

    def copy(self, script: Script, more: Iterable[Edit] = ()) -> Path:
        folder = self.place / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        source = self.checkouts / script.repository.folder / script.root
        shutil.copytree(source, folder / script.root, ignore=LEFT_OUT, dirs_exist_ok=True)
        for order in script.data:
            self._bring(order, folder)
        apply((*script.edits, *more), folder)
        for path in script.before:
            prepared = self.run(script, folder, [str(folder / path)], in_folder=(folder / path).parent)
            if prepared.code != 0:
                raise Unfit(f"{path} ended with {prepared.code}: {prepared.errors[-300:]}")
        return folder

    def _bring(self, order: str, folder: Path) -> None:
        maker, path = order.split()
        made = self.made / maker / Path(path).name
        if not made.exists():
            made.parent.mkdir(parents=True, exist_ok=True)
            # Where a maker builds on a file of the checkout (a graph), it finds it beside the path.
            command = [self.python, "-m", "benchmarks.wild.data", maker, str(made), str(folder / path)]
            making = subprocess.run(command, cwd=ROOT, env=self._environment(()), check=False, capture_output=True, text=True)
            if making.returncode != 0:
                raise Unfit(f"{maker} could not be made: {making.stderr[-300:]}")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if made.is_dir():
            shutil.copytree(made, folder / path, dirs_exist_ok=True)
        else:
            shutil.copy(made, folder / path)

    def plainly(self, script: Script, folder: Path) -> Outcome:
        return self.run(script, folder, [str(folder / script.path), *script.arguments])

    def under_sleuth(self, script: Script, folder: Path, report: Path) -> Outcome:
        watched = ["-m", "sleuth", "run", "--quiet", "--json", str(report), str(folder / script.path), *script.arguments]
        return self.run(script, folder, watched)

    def run(self, script: Script, folder: Path, arguments: list[str], in_folder: Path | None = None) -> Outcome:
        where = in_folder or (folder / script.path).parent
        if in_folder is None and script.run_in is not None:
            where = folder / script.run_in
        pictures = [str(STANDINS / "pictures")] if script.torchvision else []
        environment = self._environment([*(str(folder / part) for part in script.modules), *pictures])
        environment |= {
            "HF_HOME": str(folder / ".hf"),
            "MPLCONFIGDIR": str(self.place / "matplotlib"),
            **dict(script.environment),
        }
        return run_timed([self.python, *arguments], where, environment, self.longest)

    def _environment(self, modules: Iterable[str]) -> dict[str, str]:
        # That sleuth, whichever one is installed; the stand-ins stay behind what the repository has itself.
        paths = [*modules, str(STANDINS), str(self.sleuth)]
        return {**os.environ, **SETTINGS, "PYTHONPATH": os.pathsep.join(paths)}


def run_timed(command: list[str], where: Path, environment: dict[str, str], longest: float) -> Outcome:
    began = time.perf_counter()
    lines: list[tuple[float, str]] = []
    errors: list[str] = []
    streams: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    # A session of its own: children that a script started end with it, or they would hold the pipes open.
    with subprocess.Popen(command, cwd=where, env=environment, start_new_session=True, **streams) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [
            threading.Thread(target=_read, args=(process.stdout, lambda text: lines.append((time.perf_counter() - began, text)))),
            threading.Thread(target=_read, args=(process.stderr, errors.append)),
        ]
        for reader in readers:
            reader.start()
        code: int | None
        try:
            code = process.wait(timeout=longest)
        except subprocess.TimeoutExpired:
            code = None
        seconds = time.perf_counter() - began
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for reader in readers:
            reader.join()
    return Outcome(code, tuple(lines), "\n".join(errors), seconds)


def _read(pipe: IO[bytes], take: Callable[[str], None]) -> None:
    for line in pipe:
        take(line.decode(errors="replace").rstrip("\n"))
