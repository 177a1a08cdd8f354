"""Commands that answers print can be run as printed: by the parser of `leeward`, and by AWS' models for `aws`."""

import ast
import shlex
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name

from leeward.cli.fixes import commands_in
from leeward.cli.main import build_parser
from leeward.errors import InvalidInputError

GOLDEN = sorted(Path("tests/cli/golden").glob("*.txt"))
SOURCES = [path for path in sorted(Path("functions/leeward").rglob("*.py")) if path.name != "completion.py"]
VALUES = ("web", "start", "1", " --group web", "--cluster web", "")  # what may stand where a sentence is filled in
MOST_PLACES = 3
MENTIONED = {  # by name, not to be run
    "leeward inspect ANALYSIS --help",
    "leeward policy apply",
    "leeward upgrade ACTION --help",
    "leeward upgrade plan",
    "leeward zone ACTION --help",
}


def printed(tool):
    """Each command of the tool in the golden answers, with the file that has it."""
    for path in GOLDEN:
        for line in path.read_text().splitlines():
            yield from ((path.name, one) for one in commands_in(line) if one.startswith(f"{tool} "))


def sentences(tree: ast.AST) -> Iterator[list[str]]:
    """Texts of a module that are no docstrings, each filled in in every way."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield filled("".join(map(str, pieces)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield filled(node.value)


def filled(text):
    """The command within the text, with each value at each of its places."""
    pieces = text[max(text.find("leeward "), 0) :].split("{}")
    places = len(pieces) - 1
    ways = ((*way, *["web"] * (places - MOST_PLACES), "") for way in product(VALUES, repeat=min(places, MOST_PLACES)))
    return ["".join(map("".join, zip(pieces, way, strict=True))) for way in ways]


def in_sources():
    """Each command that a sentence of the sources names, as its forms with each value."""
    for path in SOURCES:
        for forms in sentences(ast.parse(path.read_text())):
            found = [tuple(one for one in commands_in(form) if one.startswith("leeward ")) for form in forms]
            yield from zip(*(one for one in found if len(one) == len(found[0])), strict=True)


def accepted(text):
    words = shlex.split(text)[1:]
    try:
        build_parser(words).parse_args(words)
    except InvalidInputError:
        return False
    return True


LEEWARD = sorted(set(printed("leeward")))
AWS = sorted(set(printed("aws")))


def test_there_are_some():
    assert LEEWARD
    assert AWS


@pytest.mark.parametrize(("file", "text"), LEEWARD, ids=[text for _, text in LEEWARD])
def test_leeward_accepts_what_it_prints(file, text):
    assert accepted(text)


def test_the_parser_accepts_each_command_that_a_sentence_names():
    commands = set(in_sources())
    assert len(commands) > 20
    refused = [forms for forms in commands if not MENTIONED & {*forms} and not any(map(accepted, forms))]
    assert refused == []


@pytest.mark.parametrize(("file", "text"), AWS, ids=[text for _, text in AWS])
def test_aws_accepts_what_is_printed(file, text):
    service, operation, *options = shlex.split(text)[1:]
    model = botocore.session.get_session().get_service_model(service)
    (name,) = [one for one in model.operation_names if xform_name(one, "-") == operation]
    shape = model.operation_model(name).input_shape
    known = {f"--{xform_name(member, '-')}": member for member in shape.members}
    given = {word.split("=")[0] for word in options if word.startswith("--")}
    assert given <= {*known, "--region", "--profile"}
    assert set(shape.required_members) <= {known.get(word) for word in given}
