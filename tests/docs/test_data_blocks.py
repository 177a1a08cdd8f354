"""Documents of the pages are read by what reads them in the product; outputs are those of a command's golden file."""

import json
from functools import cache
from pathlib import Path

import pytest
import yaml

from infra.settings import read_settings
from leeward.errors import LeewardError
from leeward.policy.parse import parse_documents
from tests.docs.pages import BLOCKS, OUTPUT

SPEC = json.loads(Path("docs/schema/node-policy.json").read_text())["$defs"]["NodePolicy"]["properties"]["spec"]
SECTIONS = SPEC["properties"]


def of(language):
    return [block for block in BLOCKS if block.language == language]


def test_json_is_read_settings_by_the_deployment():
    documents = [(block, json.loads(block.text)) for block in of("json")]
    settings = [(block, document) for block, document in documents if "clusters" in document]
    assert settings
    for _, document in settings:
        read_settings({"leeward": document}.get, Path.cwd(), {})


def test_yaml_is_read_policies_by_their_validator():
    assert of("yaml")
    assert "\n".join(said for block in of("yaml") if (said := refusal(block))) == ""


def test_a_policy_with_a_mistake_is_refused():
    with pytest.raises(LeewardError, match="an unknown key"):
        parse_documents([("page", policy({"drain": {"timeOut": "1m"}}))], cluster="")


def refusal(block):
    """Return the mistakes in the documents of a block. A section of a policy alone is read as part of one."""
    documents = [document for document in yaml.safe_load_all(block.text) if document is not None]
    ours = [part for document in documents if (part := as_policy(document))]
    if not ours:
        return "" if documents else f"{block.where}: empty"
    try:
        parse_documents([(block.where, document) for document in ours], cluster="")
    except LeewardError as error:
        return str(error)
    return ""


def as_policy(document):
    """The document as a policy or settings; None where it is another tool's."""
    if not isinstance(document, dict):
        return None
    if "apiVersion" in document:
        return document if document["apiVersion"] == "leeward.dev/v1" else None
    if set(document) <= {"budgets"}:
        return policy({"disruption": document})
    if set(document) <= {"windows"}:
        return policy({"update": document})
    if "spec" in document:
        return policy(document["spec"])
    return policy(document) if set(document) <= set(SECTIONS) else None


def policy(spec):
    return {
        "apiVersion": "leeward.dev/v1",
        "kind": "NodePolicy",
        "metadata": {"name": "page"},
        "spec": {"selector": {"groups": ["web"]}, **spec},
    }


@cache
def printed_lines():
    """Lines of the golden files."""
    return {line for file in Path("tests/cli/golden").glob("*.txt") for line in file.read_text().splitlines()}


def test_an_output_is_one_that_a_command_prints():
    found = [block for block in of(OUTPUT) if block.account is None]
    shown = [(block, line) for block in found for line in block.text.splitlines() if line not in {"", "…"}]
    assert "\n".join(f"{block.where}: {line}" for block, line in shown if line not in printed_lines()) == ""
