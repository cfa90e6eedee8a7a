"""What to do is said in the words of the framework that it is said to."""

import re

import numpy as np
import pytest

import sleuth
from sleuth.adapters import SPOKEN, advice_in
from sleuth.checks import all_checks
from sleuth.testing import Kit
from tests.conftest import kits
from tests.material import digits

# Names of PyTorch's that stand in the checks' own advice, whole or in part.
FOREIGN = re.compile(
    r"torch|nn\.|optim\.|DataLoader|requires_grad|zero_grad|\.backward\(|state_dict|optimizer\.|\.parameters\(|\.item\(|no_grad|detach"
    r"|param_groups|autocast|model\.(train|eval|float|double|to)\(|\w_\(|scaler"
)
OTHERS = [kit for kit in kits() if kit.name != SPOKEN]
FIXES = {check.name: check.fix for check in all_checks()}


@pytest.mark.parametrize("kit", OTHERS, ids=lambda kit: kit.name)
def test_whoever_can_have_an_illness_is_told_in_its_own_words(kit: Kit) -> None:
    told = advice_in(kit.name)
    assert set(told) <= set(FIXES)
    possible = set(FIXES) - set(kit.absent)
    assert not sorted(name for name in possible if FOREIGN.search(FIXES[name]) and name not in told)


def test_nobody_who_does_not_build_on_it_is_told_of_torch() -> None:
    foreign = {
        kit.name: [n for n, text in advice_in(kit.name).items() if "torch" in text] for kit in OTHERS if kit.name != "keras"
    }
    assert not any(foreign.values()), foreign
    assert advice_in(SPOKEN) == advice_in(None) == {}


def test_a_report_speaks_so() -> None:
    kit = next(kit for kit in OTHERS if kit.name == "numpy")
    x, y = digits()
    x = x.copy()
    x[5, 3] = np.nan
    model = kit.mlp(64, 16, 10)
    report = sleuth.examine(model, (x, y), loss=kit.loss("cross-entropy"), select=["input-not-finite"], progress=False)
    (finding,) = report.findings
    assert finding.fix == advice_in("numpy")[finding.name] != FIXES[finding.name]
