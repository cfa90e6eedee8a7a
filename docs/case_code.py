"""The code of a case as its page shows it: what the sick training is made of, and the lines in which the healthy one differs."""

import ast
import difflib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# A terminal of 80 columns, less the indent of a page's code and the sign of a change.
COLUMNS = 75
DATA = "tests.material"
# Says which frameworks can build the case: of no use to a reader.
ONLY_FOR_KITS = re.compile(r"^ *kit\.require\(.*\)\n", re.MULTILINE)


@dataclass(frozen=True)
class CaseCode:
    story: str
    data: dict[str, str]  # what each function of the material gives: digits() → "1,797 images …"
    sick: str
    changes: str  # from sick to healthy: lines that begin with - or +


def case_code(file: Path, material: Path) -> CaseCode:
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source)
    sick, healthy = (_formatted(_needed(tree, source, root)) for root in ("sick", "healthy"))
    return CaseCode(ast.get_docstring(tree) or "", _data(tree, material), sick, _changes(sick, healthy))


def _needed(tree: ast.Module, source: str, root: str) -> str:
    """Constants, the function itself, then the functions that it uses; the two roots go under one name."""
    definitions = dict(_definitions(tree))
    used, waiting = set[str](), [root]
    while waiting:
        name = waiting.pop()
        used.add(name)
        names = {node.id for node in ast.walk(definitions[name]) if isinstance(node, ast.Name)}
        waiting += sorted(names & definitions.keys() - used)
    constants = [n for n in definitions if n in used and isinstance(definitions[n], ast.Assign | ast.AnnAssign)]
    functions = [n for n in definitions if n in used and n not in (root, *constants)]
    lines = source.splitlines()
    text = {name: _segment(lines, definitions[name]) for name in used}
    text[root] = text[root].replace(f"def {root}(", "def sick(", 1)
    code = "\n\n".join(["\n".join(text[n] for n in constants), text[root], *(text[n] for n in functions)])
    return ONLY_FOR_KITS.sub("", code)


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node


def _segment(lines: list[str], node: ast.stmt) -> str:
    """With its decorators and the comment right above it."""
    start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]) - 1
    while start > 0 and lines[start - 1].startswith("#"):
        start -= 1
    return "\n".join(lines[start : node.end_lineno])


def _data(tree: ast.Module, material: Path) -> dict[str, str]:
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == DATA)
    names = {alias.name for node in imports for alias in node.names}
    functions = (n for n in ast.parse(material.read_text(encoding="utf-8")).body if isinstance(n, ast.FunctionDef))
    return {n.name: " ".join((ast.get_docstring(n) or "").split()) for n in functions if n.name in names}


def _formatted(code: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--isolated", "--line-length", str(COLUMNS), "-"]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=True, encoding="utf-8")
    return done.stdout.strip().replace("\n\n\n", "\n\n")


def _changes(sick: str, healthy: str) -> str:
    difference = difflib.unified_diff(sick.splitlines(), healthy.splitlines(), lineterm="", n=0)
    lines = ["…" if line.startswith("@@") else line for line in list(difference)[2:] if line.strip("+-")]
    return "\n".join(lines[1:])
