"""Policies: documents through validation and the stored spelling, texts through the reader of YAML."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from fuzz import corpus
from fuzz.mutations import ODD_TEXTS, mutated_json, mutated_text, odd_value
from fuzz.reduction import smaller_json
from fuzz.target import Disagreement, Target, shorter_texts
from leeward.adapters.folder.policy_files import read_documents
from leeward.errors import InvalidPolicyError
from leeward.policy.document import ClusterPolicies, ClusterSettings, NodePolicy
from leeward.policy.parse import parse_documents
from leeward.policy.schedule import any_active
from leeward.policy.write import canonical, parameters, to_json

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
GROUP_TAGS = {"kubernetes.io/cluster/prod": "owned", "team": "web", "": ""}


@cache
def documents() -> tuple[Any, ...]:
    """Return every document of the corpus."""
    return tuple(one for text in policy_texts() for one in yaml.safe_load_all(text) if one)


@cache
def policy_texts() -> tuple[str, ...]:
    """Return the files of the corpus, among them the policy that the project ships."""
    shipped = (corpus.FOLDER.parents[1] / "policies" / "default.yaml").read_text(encoding="utf-8")
    return (*corpus.texts("policies/*.yaml", "folders/*/policy.yaml"), shipped)


@cache
def pieces() -> tuple[str, ...]:
    """Return the documents of the corpus up to some of their lines: PyYAML reads a KB in two milliseconds."""
    parts = [part.lstrip("\n") for text in policy_texts() for part in text.split("---\n")]
    return tuple("".join(part.splitlines(keepends=True)[:count]) for part in parts for count in (8, 14, 22))


class PolicyDocuments(Target[list[Any]]):
    """Parsed documents, changed anywhere."""

    name = "policy-documents"
    goal = 500_000
    short = 3_000

    def generate(self, chance: Random) -> list[Any]:
        """Return one to three documents."""
        return [_document(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]

    def check(self, value: list[Any]) -> None:
        """Validate; a valid one keeps its meaning through every spelling, and its windows and selectors answer."""
        cluster = "prod" if len(value) > 1 else ""
        policies = _parsed([(f"policy.yaml#{number}", one) for number, one in enumerate(value, 1)], cluster)
        if policies is not None:
            hold(policies)

    def smaller(self, value: list[Any]) -> Iterator[list[Any]]:
        """Yield documents with one part less."""
        return (one for one in smaller_json(value) if isinstance(one, list))


class PolicyTexts(Target[str]):
    """YAML files, changed as text."""

    name = "policy-texts"
    goal = 110_000
    short = 500

    def generate(self, chance: Random) -> str:
        """Return a changed file, or a document in another style of YAML."""
        if chance.random() < 0.3:
            dumped = _dumped(_document(chance), chance.choice((None, True, False)))
            return dumped if chance.random() < 0.5 else mutated_text(chance, dumped, policy_texts())
        text = chance.choice(pieces())
        return mutated_text(chance, text, policy_texts())

    def check(self, value: str) -> None:
        """Read as the file policy.yaml; what is read is validated."""
        file: Any = _File(value)
        try:
            read = read_documents(file)
        except InvalidPolicyError as error:
            return _hold_refusal(error)
        policies = _parsed(read, "")
        if policies is not None:
            hold(policies)
        return None

    def smaller(self, value: str) -> Iterator[str]:
        """Yield shorter texts."""
        return shorter_texts(value)


def _dumped(document: Any, flow_style: bool | None) -> str:
    """Return the document as YAML; as JSON, which is YAML too, where the YAML writer cannot follow its nesting."""
    try:
        return yaml.safe_dump(document, default_flow_style=flow_style, allow_unicode=True)
    except RecursionError:
        return json.dumps(document, ensure_ascii=False)


class _File:
    """Path of a file that is in memory."""

    def __init__(self, text: str) -> None:
        self._content = text.encode("utf-8", errors="surrogatepass")

    def open(self, _mode: str) -> io.BytesIO:
        """Open it for reading bytes."""
        return io.BytesIO(self._content)

    def __str__(self) -> str:
        return str(Path("policy.yaml"))


def hold(policies: ClusterPolicies) -> None:
    """Raises Disagreement for valid policies that some spelling changes."""
    cluster = policies.settings.name
    written: list[NodePolicy | ClusterSettings] = [*policies.policies, policies.settings]
    for document in written:
        if not document.name:
            continue  # settings that no document gave
        for spelling in (canonical(document), json.dumps(to_json(document))):
            again = parse_documents([("again", json.loads(spelling))], cluster=cluster)
            read = again.policies[0] if isinstance(document, NodePolicy) else again.settings
            if read != document or canonical(read) != canonical(document):
                raise Disagreement(f"spelling: found {read}, expected {document}")
    try:
        for name, text in parameters(policies):
            text.encode()
            name.encode()
    except InvalidPolicyError as error:
        _hold_refusal(error)
    _ask(policies)


def _ask(policies: ClusterPolicies) -> None:
    windows = [*policies.settings.freeze]
    for policy in policies.policies:
        windows += [*policy.update.windows, *(one.window for one in policy.disruption.budgets if one.window)]
    any_active(windows, NOW)
    policies.selecting("web", GROUP_TAGS)


def _parsed(read: list[tuple[str, Any]], cluster: str) -> ClusterPolicies | None:
    try:
        return parse_documents(read, cluster=cluster)
    except InvalidPolicyError as error:
        _hold_refusal(error)
        return None


def _hold_refusal(error: InvalidPolicyError) -> None:
    """Raises Disagreement for a refusal that is not, line by line, what was found and what was expected."""
    for line in str(error).split("\n"):
        if "found " not in line or ", expected " not in line or not line.isprintable():
            raise Disagreement(f"refusal: found {line[:300]!r}, expected one line with found and expected")
        if len(line) > 2_000:
            raise Disagreement(f"length: found a refusal of {len(line)} characters, expected at most 2,000")


def _document(chance: Random) -> Any:
    raw = chance.choice(documents())
    match chance.randrange(8):
        case 0:
            return raw
        case 1:
            other = chance.choice(documents())
            merged = {**(raw.get("spec") or {}), **(other.get("spec") or {})}
            return {**raw, "spec": merged}
        case 2:
            section = chance.choice(list(raw["spec"] or {"selector": {}}))
            return {**raw, "spec": {**(raw["spec"] or {}), section: odd_value(chance, raw["spec"])}}
        case 3:
            return {**raw, "spec": {**(raw["spec"] or {}), chance.choice(ODD_TEXTS): odd_value(chance)}}
    return mutated_json(chance, raw)
