"""Under torchrun each process writes a file of its own into one run, and one of them speaks."""

import subprocess
import sys
from pathlib import Path

import pytest

import sleuth
from tests.script.ways import ENVIRONMENT, SCRIPTS, watched

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.mark.long
@pytest.mark.parametrize("by", ["torchrun", "sleuth"])
def test_two_processes_make_one_run(by: str, tmp_path: Path) -> None:
    if by == "sleuth":
        ended = watched("parallel.py", options=("--nproc-per-node", "2"), runs=tmp_path)
        out, errors, code = ended.out, ended.errors, ended.code
    else:
        command = [*TORCHRUN, "-m", "sleuth", "run", "--run-dir", str(tmp_path), "parallel.py"]
        done = subprocess.run(command, cwd=SCRIPTS, env=ENVIRONMENT, capture_output=True, text=True, timeout=240)
        out, errors, code = done.stdout, done.stderr, done.returncode
    assert code == 0, errors
    assert len(set(out.split())) == 1, "both end with the same weights"
    assert errors.count("sleuth · parallel.py") == 1
    (run,) = tmp_path.iterdir()
    assert sorted(file.name for file in run.iterdir()) == ["rank0.sqlite", "rank1.sqlite"]
    for rank in (0, 1):
        assert sleuth.load(run / f"rank{rank}.sqlite").culprits[0].finding.name == "missing-zero-grad"
