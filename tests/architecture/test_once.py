"""Rules that stand in one place: who calls what in the control plane."""

import ast
from pathlib import Path

PRODUCT = Path("functions/leeward")
CALLS = {
    "put_back_maximum": {"termination/maximum_size.py"},  # the only ledger of a raised MaxSize
    "raise_to(maximum)": {"termination/maximum_size.py"},
    "terminate": {"termination/steps.py"},  # each end of an instance is a termination's
    "holdings": {"cluster/membership.py", "cli/blockers/inputs.py"},
}


def calls(path):
    """Names of the methods that a module calls; `raise_to` has a name of its own where MaxSize is an argument."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            told = {argument.arg for argument in node.keywords}
            yield f"{name}(maximum)" if name == "raise_to" and "maximum" in told else name


def test_what_has_one_place_is_called_there_alone():
    found = {name: set() for name in CALLS}
    for path in PRODUCT.rglob("*.py"):
        place = path.relative_to(PRODUCT).as_posix()
        for name in calls(path) if not place.startswith(("adapters/", "ports/")) else ():
            if name in found:
                found[name].add(place)
    assert found == CALLS
