"""`sleuth replay`: a kept step, done again from the command line."""

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import sleuth
from sleuth.cli import main
from tests.watch import poisoned
from tests.watch.poisoned import Net
from tests.watch.scene_loops import train


def replayed(*arguments: str):
    return CliRunner().invoke(main, ["replay", *arguments])


class TestReplayCommand:
    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, tmp_path_factory) -> Path:
        folder = tmp_path_factory.mktemp("runs")
        torch.manual_seed(0)
        train(Net(), poisoned.loader(-2.0, strikes_at=5), directory=folder)
        (run,) = folder.iterdir()
        return run

    def test_it_shows_the_step_op_by_op(self, run: Path) -> None:
        told = replayed(str(run), f"{poisoned.__file__}:build")
        assert told.exit_code == 0, told.output
        assert "reproduced, to the last bit" in told.output
        assert "NaN is born in log" in told.output
        assert "sample 31,337 of the data set, position 3" in told.output
        rows = [line for line in told.output.splitlines() if line.startswith("✗")]
        assert rows[0].split()[1] == "log"

    def test_another_model_is_told_from_the_one_of_the_scene(self, run: Path) -> None:
        told = replayed(str(run), f"{poisoned.__file__}:build_another")
        assert told.exit_code == 2
        assert "another model than the one of the scene" in told.output
        assert "first.weight" in told.output

    def test_a_model_that_computes_something_else_does_not_reproduce(self, run: Path) -> None:
        told = replayed(str(run), f"{poisoned.__file__}:build_without_logarithm")
        assert told.exit_code == 0
        assert "not reproduced" in told.output

    def test_what_cannot_be_used_ends_with_two_and_a_sentence(self, run: Path, tmp_path: Path) -> None:
        factory = f"{poisoned.__file__}:build"
        for arguments, words in [
            ((str(tmp_path / "nowhere"), factory), "there is no run"),
            ((str(tmp_path), factory), "has no scene 1"),
            ((str(run), factory, "--scene", "7"), "it has 1"),
            ((str(run), "nowhere.py:build"), "there is no file"),
        ]:
            told = replayed(*arguments)
            assert told.exit_code == 2, told.output
            assert words in told.output

    def test_a_damaged_scene_ends_with_two_and_a_sentence(self, run: Path, tmp_path: Path) -> None:
        import shutil

        damages = [b"{}", b"[" * 100_000, b"\xff\xfe", b'{"framework": "torch"}']
        cases = [("tensors.safetensors", b"\xff" * 40), *(("scene.json", damage) for damage in damages)]
        for number, (file, content) in enumerate(cases):
            copy = tmp_path / str(number)
            shutil.copytree(run, copy)
            (copy / "scenes" / "1" / file).write_bytes(content)
            told = replayed(str(copy), f"{poisoned.__file__}:build")
            assert told.exit_code == 2, (file, told.output)

    def test_the_scene_is_at_hand_in_python(self, run: Path) -> None:
        kept = sleuth.scene(run, 1)
        again = sleuth.replay(kept, Net())
        assert again.reproduced
        assert next(op.name for op in again.operations if not op.is_finite) == "log"
        assert sleuth.load(run).scenes == (1,)
