"""`./dev compat torch==2.8.0`: tries a version of a framework in an environment that is thrown away. Needs only Python.

Further words are further packages: `./dev compat jax==0.9.2 flax==0.12.4`. The first that has an adapter is the framework.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
FRAMEWORKS = ("torch", "jax", "keras", "mlx")
# Of what the tests of all frameworks need, that is for linting, for browsers and for Mojo.
LEFT_OUT = re.compile(
    r"mojo|mblack|playwright|ruff|mypy|ast_serialize|grimp|import-linter|ipython|transformers|tokenizers", re.IGNORECASE
)
CASES = (
    "double-softmax or missing-nonlinearity or vanishing-gradients or loss-not-finite or missing-zero-grad or train-val-overlap"
)
SCRIPTS = {
    "torch": ("tests/script/test_loop_mistakes.py", "tests/script/test_fidelity.py"),
    "jax": ("tests/script/test_run_jax.py",),
    "keras": ("tests/script/test_run_keras.py",),
    "mlx": ("tests/script/test_run_mlx.py",),
}


@dataclass(frozen=True)
class Part:
    title: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    part: Part
    text: str
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def is_good(self) -> bool:
        return self.passed > 0 and not self.failed


def parts_of(framework: str) -> list[Part]:
    return [
        Part("private names", ("tests/adapters/test_compat.py", "-k", framework)),
        Part("conformance", ("tests/test_conformance.py", "-k", f"keeps_the_rule and {framework}-")),
        Part("cases, sick and healthy", ("tests/test_cases.py", "--full", f"-k=-{framework} and ({CASES})")),
        Part("sleuth run of scripts", ("--full", *SCRIPTS[framework])),
    ]


def say(text: str) -> None:
    print(text, flush=True)


def make_environment(folder: Path, wanted: list[str]) -> Path:
    """The wanted versions with whatever they need; the rest as in requirements/dev.txt, whose versions may not ask for these."""
    say(f"1/3  a new environment, and {' '.join(wanted)} with what it needs (a CUDA build of torch: several GB, some minutes)")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-compile", *wanted], check=True)
    listed = subprocess.run([*pip, "list", "--format=json"], check=True, capture_output=True, text=True).stdout
    there = {_plain(one["name"]) for one in json.loads(listed)} - {"setuptools"}
    pins = [line for line in (ROOT / "requirements/dev.txt").read_text().split() if "==" in line]
    rest = [pin for pin in pins if _plain(pin.split("==")[0]) not in there and not LEFT_OUT.match(pin)]
    say(f"2/3  {len(rest)} further packages, as the tests have them (about a minute)")
    subprocess.run([*pip, "install", "--quiet", "--no-compile", "--no-deps", *rest], check=True)
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", ROOT], check=True)
    return python


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def attempt(python: Path, part: Part) -> Outcome:
    # Another version may warn of other things: that is no failure of ours.
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default", "--disable-warnings"]
    counted = python.parents[2] / "counted.xml"
    counted.unlink(missing_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    began = time.monotonic()
    command += [f"--junitxml={counted}", *part.arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
    return Outcome(part, done.stdout + done.stderr, time.monotonic() - began, *_counts(counted))


def _counts(file: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped. Nothing is counted where pytest could not begin."""
    if not file.exists():
        return 0, 0, 0
    suites = ElementTree.parse(file).getroot().iter("testsuite")
    found = [{key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")} for suite in suites]
    failed, skipped = (sum(one["failures"] + one["errors"] for one in found), sum(one["skipped"] for one in found))
    return sum(one["tests"] for one in found) - failed - skipped, failed, skipped


def table(wanted: list[str], outcomes: list[Outcome]) -> str:
    lines = ["", f"{' '.join(wanted):30}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}"]
    for one in outcomes:
        lines.append(f"{one.part.title:30}{one.passed:8}{one.failed:8}{one.skipped:9}{one.seconds:9.0f}")
    for one in outcomes:
        lines += [line for line in one.text.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if not one.is_good and not one.failed:  # nothing was run
            lines += ["", f"{one.part.title}:", *one.text.strip().splitlines()[-15:]]
    return "\n".join(lines)


def main(wanted: list[str]) -> int:
    names = [re.split(r"[=<>!~\[]", one)[0] for one in wanted]
    framework = next((name for name in names if name in FRAMEWORKS), None)
    if framework is None:
        say(f"Which version of {', '.join(FRAMEWORKS)} is to be tried? For instance: ./dev compat torch==2.8.0")
        return 2
    folder = Path(tempfile.mkdtemp(prefix="sleuth-compat-"))
    try:
        python = make_environment(folder / "venv", wanted)
        say("3/3  tests (some minutes)")
        outcomes = []
        for part in parts_of(framework):
            outcomes.append(attempt(python, part))
            say(f"     {part.title}: {'all passed' if outcomes[-1].is_good else 'not all passed'}, {outcomes[-1].seconds:.0f} s")
        say(table(wanted, outcomes))
        return 0 if all(one.is_good for one in outcomes) else 1
    except subprocess.CalledProcessError as error:
        say(f"The environment could not be made: {' '.join(map(str, error.cmd[1:6]))} … ended with {error.returncode}.")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
