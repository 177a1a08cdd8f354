"""Shape of the product: how much there is to read, and how it is cut. A limit is lowered when the code allows it, and
raised only in a commit that says which feature needs it."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PRODUCT = ROOT / "functions" / "leeward"
COMMAND_LINE = {"cli", "capture", "doctor"}  # the packages that no Lambda function needs
WEIGHTS = {
    "control plane": 57_080,
    "command line": 15_700,
    "infra": 5_650,
    "local and simulation": 42_900,
    "tests": 119_500,
}
"""Lines of Python, as the formatter leaves them."""
WORDS = 55_000  # of docs/
LONG_SIGNATURES = 1  # functions with more than MOST_PARAMETERS
MOST_PARAMETERS = 6
WHOLE_PORTS = 300  # functions that take all ports


def lines(area: str) -> int:
    """Lines of Python of an area of the project."""
    if area == "local and simulation":
        return _lines(ROOT / "local") + _lines(ROOT / "simulation")
    if area in {"infra", "tests"}:
        return _lines(ROOT / area)
    packages = [folder for folder in PRODUCT.iterdir() if folder.is_dir()]
    own = sum(_lines(folder) for folder in packages if folder.name in COMMAND_LINE)
    return own if area == "command line" else _lines(PRODUCT) - own


@pytest.mark.parametrize("area", WEIGHTS)
def test_no_area_weighs_more_than_its_limit(area):
    assert lines(area) <= WEIGHTS[area]


def test_the_documentation_has_no_more_words_than_its_limit():
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").rglob("*.md")) <= WORDS


def test_no_more_functions_than_the_limit_have_many_parameters():
    long = [f"{name}({count})" for name, count in _signatures() if count > MOST_PARAMETERS]
    assert len(long) <= LONG_SIGNATURES, long


def test_no_class_name_stands_for_two_things():
    names = Counter(
        node.name
        for tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name[0] != "_"
    )
    shared = sorted(name for name, count in names.items() if count > 1)
    assert shared == []


def test_no_more_functions_than_the_limit_take_all_ports():
    taking = sum("Ports" in _annotations(node) for node in _functions())
    assert taking <= WHOLE_PORTS


def _lines(folder: Path) -> int:
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in folder.rglob("*.py"))


def _trees() -> Iterator[ast.Module]:
    for file in sorted(PRODUCT.rglob("*.py")):
        yield ast.parse(file.read_text(encoding="utf-8"))


def _functions() -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for tree in _trees():
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _signatures() -> Iterator[tuple[str, int]]:
    for node in _functions():
        yield node.name, sum(one.arg not in {"self", "cls"} for one in _arguments(node))


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {ast.unparse(one.annotation).strip("'\"") for one in _arguments(node) if one.annotation is not None}
