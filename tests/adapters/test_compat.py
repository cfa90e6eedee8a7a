"""The private names of frameworks that adapters use are listed, and the installed versions have them."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import sleuth.adapters
from sleuth.core.errors import UnusableInput
from sleuth.core.runtime.private_names import PrivateName, PrivateNames, exists
from tests.adapters.compat_examples import ELSEWHERE, EXAMPLES
from tests.adapters.private_scan import attributes_in, defined_in, names_in, sources
from tests.conftest import kits

ADAPTERS = Path(sleuth.adapters.__file__).parent
# What else belongs to a framework than the package of its name.
PACKAGES = {"jax": ("jax", "jaxlib", "flax", "equinox", "optax"), "keras": ("keras", "torch", "jax")}
# Texts that look like hidden attributes and are not: parts of words, names of operations, a method of another adapter of ours.
WORDS = {
    "torch": {"__r", "_cell", "_hooks", "_saved_", "_softmax", "_transpose"},
    "jax": {"_operator_"},
    "keras": {"_initializer", "_forget_hands"},
    "mlx": {"__i"},
    "numpy": {"_g", "_grad", "_gradient"},
    "mithril": {"_cache"},
}
FRAMEWORKS = [kit.name for kit in kits()]


def private_names(framework: str) -> PrivateNames:
    if not (ADAPTERS / framework / "compat.py").exists():
        return PrivateNames(framework, "", ())
    return importlib.import_module(f"sleuth.adapters.{framework}.compat").PRIVATE


def listed(private: PrivateNames) -> list[PrivateName]:
    return [*private.needed, *private.replaced, *private.when_imported, *private.attributes]


def modules_names() -> list:
    found = []
    for framework in FRAMEWORKS:
        private = private_names(framework)
        for one in (*private.needed, *private.replaced, *private.when_imported):
            found.append(pytest.param(one.name, id=f"{framework}-{one.name}"))
    return found


def attributes() -> list:
    return [
        pytest.param(framework, *one.name.rsplit(".", 1), id=f"{framework}-{one.name}")
        for framework in FRAMEWORKS
        for one in private_names(framework).attributes
        if one.name.split(".")[0] not in ELSEWHERE
    ]


@pytest.mark.parametrize("name", modules_names())
def test_a_listed_name_exists_in_the_installed_version(name: str) -> None:
    assert exists(name)


@pytest.mark.parametrize(("framework", "owner", "attribute"), attributes())
def test_an_object_has_the_listed_attribute(framework: str, owner: str, attribute: str) -> None:
    example = EXAMPLES[framework][owner]()
    kinds = [kind.__name__ for kind in type(example).__mro__] + [kind.__qualname__ for kind in type(example).__mro__]
    # Nodes of torch's graph are instances of an abstract class that they do not inherit.
    assert owner.rsplit(".", 1)[-1] in kinds or hasattr(example, "next_functions")
    assert hasattr(example, attribute)


def is_covered(name: str, names: set[str]) -> bool:
    """Listed; or a module on the way to one that is; or a public attribute of one."""
    if name in names or any(one.startswith(f"{name}.") for one in names):
        return True
    owner = next((one for one in names if name.startswith(f"{one}.")), None)
    return owner is not None and not any(
        part.startswith("_") and not part.endswith("__") for part in name[len(owner) + 1 :].split(".")
    )


def unlisted(framework: str, files: list[tuple[Path, str]]) -> list[str]:
    private = private_names(framework)
    names = {one.name for one in listed(private)}
    parts = {part for name in names for part in name.split(".")} | WORDS[framework]
    own = {name for _, source in files for name in defined_in(source)}
    found = []
    for file, source in files:
        used = names_in(source, PACKAGES.get(framework, (framework,)))
        found += [f"{file.name}:{line} {name}" for name, line in used.items() if not is_covered(name, names)]
        found += [f"{file.name}:{line} {a}" for a, line in attributes_in(source).items() if a not in own and a not in parts]
    return found


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_adapter_uses_no_private_name_that_is_not_listed(framework: str) -> None:
    files = [(file, source) for file, source in sources(ADAPTERS / framework) if file.name != "compat.py"]
    assert unlisted(framework, files) == []


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_listed_name_is_used(framework: str) -> None:
    files = [source for file, source in sources(ADAPTERS / framework) if file.name != "compat.py"]
    unused = [one.name for one in listed(private_names(framework)) if not any(one.name.rsplit(".", 1)[-1] in s for s in files)]
    assert unused == []


@pytest.mark.parametrize(
    "line",
    [
        "import torch\ntorch._C._gone()",
        "import torch as t\nt.utils._gone",
        "from torch import nn\nnn.modules.loss._Gone",
        "from torch.utils.data import _gone",
        "from torch._gone import x",
        "import torch._gone.inside",
        "import torch\ngetattr(torch, '_gone', None)",
        "import sys\nframes = sys.modules.get('torch._gone')\nframes.x",
        "import sys\nsys.modules['torch']._gone",
        "import torch\ninside = torch._C\ninside.gone()",
        "import torch\ndef f(node):\n    return node._gone",
        "def f(node):\n    return vars(node)['_gone']",
    ],
)
def test_a_name_that_is_not_listed_is_found_however_it_is_written(line: str) -> None:
    assert unlisted("torch", [(Path("new.py"), line)])


def test_public_names_and_names_of_our_own_are_left_alone() -> None:
    own = "import torch\nclass A:\n    def f(self):\n        self._mine = torch.nn.Linear.__call__\ndef g(a):\n    return a._mine"
    assert unlisted("torch", [(Path("new.py"), own)]) == []


def test_a_version_without_a_needed_name_is_refused_with_the_name_and_the_version_that_will_do() -> None:
    gone = PrivateName("torch._C._gone", "hear it", "it is not heard")
    with pytest.raises(
        UnusableInput, match=r"torch 2.*torch\._C\._gone \(it is not heard\).*Install torch 2\.6 or newer.*2\.13\.0"
    ):
        PrivateNames("torch", "2.6", ("2.13.0",), needed=(gone,)).require()


def test_a_version_that_is_too_old_is_refused_before_anything_of_it_is_looked_for() -> None:
    with pytest.raises(UnusableInput, match=r"torch 2\.\S+ is too old for sleuth. Install torch 99\.1 or newer"):
        PrivateNames("torch", "99.1", ("99.2",), needed=(PrivateName("torch._C._gone", "", ""),)).require()
    PrivateNames("torch", "2.6", ("2.13.0",)).require()


def test_a_module_that_nobody_imported_is_not_imported_and_one_that_lost_a_name_is_refused() -> None:
    absent = PrivateName("torch._gone.name", "", "")
    lost = PrivateName("torch.nn._gone", "", "something is not heard")
    private = PrivateNames("torch", "2.6", ("2.13.0",), when_imported=(absent, lost))
    assert private.if_imported("torch._gone.name") is None
    with pytest.raises(UnusableInput, match="something is not heard"):
        private.if_imported("torch.nn._gone")


def test_an_adapter_that_does_not_fit_is_left_out_and_says_why_when_it_is_asked_for() -> None:
    """In a process of its own: the names are gone before sleuth meets torch."""
    code = (
        "import numpy, torch, sleuth\n"
        "del torch.utils.data.dataloader._BaseDataLoaderIter\n"
        "from sleuth.adapters import adapter_for, available\n"
        "print([adapter.name for adapter in available()])\n"
        "try:\n    adapter_for(torch.nn.Linear(1, 1))\n"
        "except sleuth.UnusableInput as error:\n    print(error)\n"
        "torch.utils.data.dataloader._BaseDataLoaderIter, lost = object, torch.amp.grad_scaler\n"
        "del lost.GradScaler\n"
        "try:\n    adapter_for(torch.nn.Linear(1, 1))\n"
        "except sleuth.UnusableInput as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0] == "['numpy']"
    assert "_BaseDataLoaderIter (trainings cannot be listened to)" in said[1]
    assert "sleuth does not fit this version of torch: cannot import name 'GradScaler'" in said[2]
