"""Kits, cases and the account of what each case examined."""

import os
import sys
from pathlib import Path

# As ./dev says: without the matrix unit that some virtual machines promise and do not have. Read when torch is imported.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

import pytest
import torch
from torch.nn.modules import module

# Chosen when Keras is imported, by whichever test comes first.
os.environ.setdefault("KERAS_BACKEND", "torch")

from sleuth.testing import Kit
from tests import golden_tables, schedule
from tests.kits.jax_kit import JaxKit
from tests.kits.keras_kit import KerasKit
from tests.kits.mithril_kit import MithrilKit
from tests.kits.mlx_kit import MlxKit
from tests.kits.numpy_kit import NumpyKit
from tests.kits.torch_kit import TorchKit
from tests.seeding import seed

# A package of somebody else's, with tests of its own: adapters/test_outside_adapter.py installs it and runs them.
collect_ignore = ["outside_adapter"]

# Small models train faster on one thread, and the same way on every machine.
torch.set_num_threads(1)


def kits() -> list[Kit]:
    return [TorchKit(), NumpyKit(), MithrilKit(), KerasKit(), JaxKit(), MlxKit()]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files and rows anew instead of comparing")
    schedule.add_options(parser)


pytest_configure = schedule.add_markers
pytest_collection_modifyitems = schedule.select


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """Compare a text with the file of that name under tests/golden; --update-golden writes it."""

    def compare(name: str, text: str) -> None:
        file = Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        assert file.exists(), f"{file} is missing: run with --update-golden and read what it wrote"
        assert text == file.read_text()

    return compare


@pytest.fixture
def golden_row(request: pytest.FixtureRequest):
    """Compare what was found in a case with its row in the framework's table; --update-golden writes the row.

    None is for a case that cannot be built: it has no row."""

    def compare(case: str, kit: str, found: str | None) -> None:
        if request.config.getoption("--update-golden"):
            golden_tables.write_row(kit, case, found)
            return
        row = golden_tables.rows(kit).get(case)
        where = f"{case} in {golden_tables.table(kit)}"
        assert row is not None or found is None, f"no row of {where}: run with --update-golden and read what it wrote"
        assert row is None or found is not None, f"{where} has a row and cannot be built: run with --update-golden"
        assert found == row or (found is not None and row is not None and golden_tables.agree(found, row)), (found, row)

    return compare


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test starts from the same random state."""
    seed()


@pytest.fixture(autouse=True)
def nothing_is_compiled():
    """A watch asks whether torch compiled something before: not in a test before this one."""
    yield
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None and dynamo.counters["stats"]:
        torch._dynamo.reset()
        dynamo.counters.clear()


@pytest.fixture(autouse=True)
def no_hook_survives():
    """Whatever a test does, no global hook and no replaced call of torch is left behind."""
    call = torch.nn.Module.__call__
    yield
    hooks = (module._global_forward_hooks, module._global_forward_pre_hooks, module._global_backward_hooks)
    assert not any(hooks), "a global hook was left behind"
    assert torch.nn.Module.__call__ is call, "nn.Module.__call__ was left replaced"
    assert torch._C._len_torch_function_stack() == 0, "a torch function mode was left behind"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Per case, how many checks were examined: silence by not looking is not health. And which cases were left for later."""
    schedule.announce(terminalreporter)
    rows, unbuilt = [], []
    for outcome in ("passed", "failed", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            properties = dict(getattr(report, "user_properties", ()))
            if "examined" in properties and report.when == "call":
                rows.append((report.nodeid.split("[")[-1].rstrip("]"), properties["variant"], *properties["examined"]))
            if "cannot_build" in properties and report.when == "call":
                unbuilt.append((report.nodeid.split("[")[-1].rstrip("]"), properties["cannot_build"]))
    if rows:
        terminalreporter.section("checks examined / not examined, per case")
        for name, variant, examined, absent in sorted(rows):
            terminalreporter.write_line(f"{name:45} {variant:8} {examined:4} / {absent}")
    if unbuilt:
        terminalreporter.section("cases that a kit cannot build")
        for name, reason in sorted(set(unbuilt)):
            terminalreporter.write_line(f"{name:45} {reason}")
