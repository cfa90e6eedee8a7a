"""A checkpoint that is refused: what differs, why, and the line that mends it. Every line that is told is tried out."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from sleuth.checks.evidence.checkpoint_mismatch import reasons
from sleuth.core.observation import Entry, Misfit
from tests.script.crashing import finding, mlp, report_without_watch


class Named(nn.Module):
    def __init__(self, *names: str, width: int = 16, classes: int = 4) -> None:
        super().__init__()
        sizes = [8, *[width] * (len(names) - 1), classes]
        for name, a, b in zip(names, sizes, sizes[1:], strict=False):
            self.add_module(name, nn.Linear(a, b))


def wrapped(prefix: str, model: nn.Module) -> dict[str, torch.Tensor]:
    return {prefix + name: t for name, t in model.state_dict().items()}


def refused(model: nn.Module, state: object):
    def load() -> None:
        model.load_state_dict(state)

    found = finding(report_without_watch(load), "checkpoint-does-not-fit")
    assert found.location is not None
    assert found.location.text == "model.load_state_dict(state)"
    return found


def mends(fix: str, model: nn.Module, state: object) -> bool:
    """Does the code in the fix load the checkpoint?"""
    line = re.search(r"(renamed = .+?; )?model[\w.]*\.load_state_dict\(.+\)(?=\.$)", fix)
    assert line is not None, fix
    exec(line[0], {"model": model, "state": state})
    return True


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "backbone."])
def test_a_prefix_in_the_checkpoint_is_named_and_the_line_told_takes_it_away(prefix: str) -> None:
    model, state = mlp(), wrapped(prefix, mlp())
    found = refused(model, state)
    assert repr(prefix) in found.summary
    assert found.numbers["reason"] == "prefix"
    assert mends(found.fix, model, state)


def test_a_wrapper_around_the_model_is_named_and_the_line_told_goes_inside() -> None:
    model, state = nn.DataParallel(mlp()), mlp().state_dict()
    found = refused(model, state)
    assert "model.module.load_state_dict(state)" in found.fix
    assert mends(found.fix, model, state)


def test_another_width_is_told_by_layer() -> None:
    model, state = Named("body", "head", classes=10), Named("body", "head").state_dict()
    found = refused(model, state)
    assert "head.weight is (4, 16) in the checkpoint and (10, 16) in the model" in found.summary
    assert "4 instead of 10 in head" in found.fix
    assert mends(found.fix, model, state)


def test_layers_that_were_renamed_are_matched_by_their_ends_and_shapes() -> None:
    model, state = Named("backbone", "classifier"), Named("encoder", "head").state_dict()
    found = refused(model, state)
    assert "encoder is backbone in the model" in found.summary
    assert mends(found.fix, model, state)
    assert torch.equal(model.classifier.weight, state["head.weight"])


def test_layers_of_one_shape_that_were_renamed_keep_their_order() -> None:
    model, state = Named("one", "two", "three"), Named("fc1", "fc2", "fc3").state_dict()
    found = refused(model, state)
    assert mends(found.fix, model, state)
    assert torch.equal(model.two.weight, state["fc2.weight"])


def test_a_layer_that_the_checkpoint_has_not_is_named() -> None:
    model, state = Named("body", "head", "extra"), Named("body", "head", classes=16).state_dict()
    found = refused(model, state)
    assert "that the checkpoint has not: extra" in found.summary
    assert found.numbers["missing"] == ["extra.weight", "extra.bias"]
    assert mends(found.fix, model, state)


def test_a_layer_that_the_model_has_not_is_named() -> None:
    model, state = Named("body", "head", classes=16), Named("body", "head", "extra").state_dict()
    found = refused(model, state)
    assert "that Named has not: extra" in found.summary
    assert mends(found.fix, model, state)


def test_a_prefix_and_another_width_are_both_told() -> None:
    found = refused(mlp(10), wrapped("module.", mlp()))
    assert "'module.'" in found.summary
    assert "(4, 16) in the checkpoint and (10, 16) in the model" in found.summary


def test_a_whole_checkpoint_is_told_with_the_key_of_the_model() -> None:
    model = mlp()
    state = {"epoch": 3, "model_state_dict": mlp().state_dict(), "optimizer": {"state": {}}}
    found = refused(model, state)
    assert "under 'model_state_dict'" in found.summary
    assert mends(found.fix, model, state)


def test_a_model_in_place_of_its_state_is_told() -> None:
    found = refused(mlp(), mlp())
    assert "was given a Sequential" in found.summary


def test_an_optimiser_of_other_parameters_is_told() -> None:
    model = mlp()
    state = torch.optim.Adam(model.parameters()).state_dict()

    def load() -> None:
        torch.optim.Adam(model[0].parameters()).load_state_dict(state)

    found = finding(report_without_watch(load), "checkpoint-does-not-fit")
    assert "groups of 4 parameters in the checkpoint, of 2 here" in found.summary


def _pickled(path: Path) -> None:
    torch.save(mlp(), path)


def _cut_off(path: Path) -> None:
    torch.save(mlp().state_dict(), path)
    path.write_bytes(path.read_bytes()[:200])


def _empty(path: Path) -> None:
    path.touch()


@pytest.mark.parametrize(("write", "word"), [(_pickled, "weights_only"), (_cut_off, "os.replace"), (_empty, "os.replace")])
def test_a_file_that_cannot_be_read_is_told(write: Callable[[Path], None], word: str, tmp_path: Path) -> None:
    write(tmp_path / "model.pt")
    found = finding(report_without_watch(lambda: torch.load(tmp_path / "model.pt")), "checkpoint-does-not-fit")
    assert word in found.fix


def test_a_refusal_that_only_its_message_tells_of_is_read_from_that() -> None:
    def load() -> None:
        message = 'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "a.weight". \n\t'
        raise RuntimeError(message + 'Unexpected key(s) in state_dict: "module.a.weight". ')

    found = finding(report_without_watch(load), "checkpoint-does-not-fit")
    assert found.numbers["reason"] == "prefix"


def test_what_has_nothing_in_common_is_not_called_renamed() -> None:
    misfit = Misfit("names", "Net", (Entry("a.weight", (1, 2)),), (Entry("b.bias", (3,)),))
    assert [r.kind for r in reasons(misfit)] == ["missing", "unexpected"]


def test_a_missing_file_is_no_misfit() -> None:
    assert not report_without_watch(lambda: torch.load("nowhere.pt")).findings
