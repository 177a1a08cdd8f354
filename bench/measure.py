"""Measures of the product's source: how large it is, how it is cut, and how its docstrings read. `make measure`.

They orient, they gate nothing; the words that must not come back are held by tests/architecture."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.trips import sentences

ROOT = Path(__file__).parent.parent
PRODUCT = ROOT / "functions" / "leeward"
PRONOUNS = re.compile(r"\b(?:no|some|any|every)body\b", re.IGNORECASE)
FRAGMENT = re.compile(  # begins neither a sentence in the imperative nor a noun phrase
    r"(?:again|also|and|as|at|before|behind|beside|but|by|for|from|how|in|none|not|of|on|only|or|such|than|that|to|under"
    r"|what|when|where|whether|which|while|who|whose|why|with|without)\b",
    re.IGNORECASE,
)


def run() -> bool:
    """Print one line for each measure. True: nothing here can be missed."""
    for name, value in measures():
        print(f"  {name}: {value}")
    print("trips: what a story enters and runs")
    for name, value in sentences():
        print(f"  {name}: {value}")
    return True


def measures() -> Iterator[tuple[str, str]]:
    """Name and value."""
    files = sorted(PRODUCT.rglob("*.py"))
    lengths = [len(file.read_text(encoding="utf-8").splitlines()) for file in files]
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    yield "lines, files, lines of the median file", f"{sum(lengths):,}, {len(files)}, {median(lengths):.0f}"
    yield "files above 600 lines", str(sum(length > 600 for length in lengths))
    texts = [text for tree in trees.values() for text in docstrings(tree)]
    fragments = sum(is_fragment(text) for text in texts)
    yield "docstrings that begin with a fragment", f"{fragments} of {len(texts):,}, {fragments / len(texts):.1%}"
    words = sum(len(text.split()) for text in texts)
    pronouns = sum(len(PRONOUNS.findall(text)) for text in texts)
    yield "human pronouns per 10,000 words of docstrings", f"{pronouns / words * 10_000:.1f}"
    yield "functions that take all ports", str(sum(_takes_ports(tree) for tree in trees.values()))
    reached = modules_of("leeward.upgrade", "leeward.upgrade.rollout")
    yield "files of leeward.upgrade behind one turn of an upgrade", str(len(reached))
    definitions = sum(len(file.read_text().splitlines()) for file in PRODUCT.rglob("*.asl.yaml"))
    yield "lines of state machine definitions", f"{definitions:,}"


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of the module, its classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


def is_fragment(text: str) -> bool:
    """Return whether it begins with a preposition, a conjunction or a question word."""
    return FRAGMENT.match(text) is not None


def modules_of(package: str, start: str) -> set[str]:
    """Modules of the package that importing `start` needs, late imports with them."""
    found, left = set[str](), [start]
    while left:
        module = left.pop()
        if module in found:
            continue
        found.add(module)
        tree = ast.parse(_file_of(module).read_text(encoding="utf-8"))
        imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module)
        left += [node.module for node in imports if node.module and node.module.startswith(f"{package}.")]
    return {module for module in found if module.startswith(f"{package}.")}


def _file_of(module: str) -> Path:
    path = PRODUCT.parent / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _takes_ports(tree: ast.Module) -> int:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return sum(any(_is_ports(argument) for argument in function.args.args) for function in functions)


def _is_ports(argument: ast.arg) -> bool:
    return isinstance(argument.annotation, ast.Name) and argument.annotation.id == "Ports"


if __name__ == "__main__":
    run()
