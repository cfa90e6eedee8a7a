"""What holds for the whole house."""

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import sleuth
from sleuth.checks import all_checks
from sleuth.core.stage import Stage
from sleuth.probes.lab.probe import all_probes

SOURCE = Path(sleuth.__file__).parent
FRAMEWORKS = ("torch", "jax", "keras", "tensorflow", "mlx", "mithril", "sklearn")


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_sleuth_imports_no_framework() -> None:
    loaded = python("import sys, sleuth; print(*sys.modules)").split()
    assert not [name for name in FRAMEWORKS if name in loaded]


def test_importing_sleuth_is_quick() -> None:
    code = "import time; t = time.perf_counter(); import sleuth; print(time.perf_counter() - t)"
    assert min(float(python(code)) for _ in range(5)) < 0.3


def test_a_check_is_named_after_its_file_and_coded_after_its_stage() -> None:
    for check in all_checks():
        file = SOURCE / "checks" / check.stage.value / f"{check.name.replace('-', '_')}.py"
        assert file.exists(), check.name
        assert check.code.startswith(check.stage.letter), check.code


def test_codes_and_names_are_used_once() -> None:
    checks = all_checks()
    assert len({c.code for c in checks}) == len(checks)
    assert len({c.name for c in checks}) == len(checks)


def test_titles_are_short_and_texts_are_there() -> None:
    for check in all_checks():
        assert 0 < len(check.title) <= 60, check.name
        assert not check.title.endswith("."), check.name
        assert check.why.endswith("."), check.name
        assert check.fix.endswith("."), check.name


def test_every_threshold_is_a_number_that_settings_can_change() -> None:
    for check in all_checks():
        for name, value in check.thresholds.items():
            assert isinstance(value, int | float), f"{check.name}.{name}"


def test_stage_letters_are_unique() -> None:
    assert len({stage.letter for stage in Stage}) == len(Stage)


def test_every_probe_is_a_probe_of_one_stage_and_says_what_it_emits() -> None:
    for probe in all_probes():
        # What grows is a fact of the report, and no check's.
        assert probe.emits or probe.name == "growing", probe.name
        assert 0 < probe.share <= 1, probe.name


def test_an_extra_of_a_framework_is_a_range_from_the_oldest_version_that_its_adapter_names() -> None:
    extras = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert "==" not in str(extras)
    for framework in ("torch", "jax", "keras", "mlx"):
        oldest = importlib.import_module(f"sleuth.adapters.{framework}.compat").PRIVATE.oldest
        assert f"{framework}>={oldest}" in extras[framework]
    assert extras["torch"][0] in extras["demo"]


def test_the_versions_of_the_tests_and_of_the_demo_are_exact_and_the_same() -> None:
    def pins(name: str) -> set[str]:
        lines = (SOURCE.parents[1] / "requirements" / name).read_text().splitlines()
        return {line for line in lines if not line.startswith("#")}

    assert all(line.count("==") == 1 for line in pins("dev.txt"))
    assert pins("demo.txt") < pins("dev.txt")


def test_the_newest_version_that_an_adapter_says_was_tried_is_the_one_of_the_tests() -> None:
    pins = (SOURCE.parents[1] / "requirements" / "dev.txt").read_text().splitlines()
    for framework in ("torch", "jax", "keras", "mlx"):
        tried = importlib.import_module(f"sleuth.adapters.{framework}.compat").PRIVATE.tried
        assert f"{framework}=={tried[-1]}" in pins
