"""Parser of JSON or YAML objects into the policies of one cluster, or one refusal that names every error.

Decides which documents there may be; their keys are in `sections.py`, their defaults in `document.py`. A text that AWS
would replace by another value when the policy becomes a parameter is refused. CloudFormation reads
`{{resolve:secretsmanager:NAME}}` anywhere in a template as that secret, with the rights of the principal that deploys.
Systems Manager refuses a value with `{{`, so no policy can need it. `${` begins a name that CloudFormation substitutes,
and both marks of the CDK's tokens stand for attributes of other resources."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from leeward.errors import InvalidPolicyError
from leeward.policy import sections
from leeward.policy.disruption_section import disruption, windows
from leeward.policy.document import ClusterPolicies, ClusterSettings, NodePolicy
from leeward.policy.fields import Problems, Section, shown
from leeward.policy.sections import webhook

OPENINGS = ("{{", "${", "#{Token[")
EXPECTED = f"text without {', '.join(OPENINGS)}, which deployments read as a reference to another value"
API_VERSION = "leeward.dev/v1"
NODE_POLICY, CLUSTER_SETTINGS = "NodePolicy", "ClusterSettings"
KINDS = (NODE_POLICY, CLUSTER_SETTINGS)
POLICY_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
Document = NodePolicy | ClusterSettings


def parse_documents(documents: Sequence[tuple[str, Any]], *, cluster: str) -> ClusterPolicies:
    """Return the policies of a cluster in their order, and its settings.

    `documents`: (source, parsed object) each. `cluster` may be empty where its name is not known (offline): then
    settings of any name are taken. Raises InvalidPolicyError with one line for each problem of all documents: source,
    path, found, expected.
    """
    lines: list[str] = []
    parsed: list[tuple[str, Document]] = []
    for source, raw in documents:
        problems = Problems(source=source)
        document = _document(raw, problems)
        refuse_references(raw, problems)
        lines += problems.lines
        if document is not None:
            parsed.append((source, document))
    lines += _conflicts(parsed, cluster)
    if lines:
        raise InvalidPolicyError("\n".join(lines))
    settings = [document for _, document in parsed if isinstance(document, ClusterSettings)]
    return ClusterPolicies(
        settings=settings[0] if settings else ClusterSettings(name=cluster),
        policies=tuple(document for _, document in parsed if isinstance(document, NodePolicy)),
    )


def _document(raw: Any, problems: Problems) -> Document | None:
    """Parse one document; None when its kind is not known."""
    with Section({} if raw is None else raw, "", problems) as root:
        if problems.lines:
            return None
        kind, version = root.raw("kind"), root.raw("apiVersion")
        metadata, spec = root.section("metadata"), root.section("spec")
        if version != API_VERSION:
            root.refuse("apiVersion", API_VERSION)
        if kind not in KINDS:
            root.refuse("kind", f"one of {', '.join(KINDS)}")
        if problems.lines:
            root.seal()
            return None
        with metadata, spec:
            return _node_policy(metadata, spec) if kind == NODE_POLICY else _cluster_settings(metadata, spec)


def _node_policy(metadata: Section, spec: Section) -> NodePolicy:
    return NodePolicy(
        name=_name(metadata, POLICY_NAME, "a name of at most 63 lower-case letters, digits, - and ."),
        selector=sections.selector(spec),
        interruption=sections.interruption(spec),
        drain=sections.drain(spec),
        update=sections.update(spec),
        requirements=sections.requirements(spec),
        node=sections.node(spec),
        disruption=disruption(spec),
        finalizer=spec.boolean("finalizer", False),
        repair=sections.repair(spec),
        cni=sections.cni(spec),
        template=sections.template(spec),
        on_shift=sections.on_shift(spec),
    )


def _cluster_settings(metadata: Section, spec: Section) -> ClusterSettings:
    default = ClusterSettings(name="")
    return ClusterSettings(
        name=_name(metadata, CLUSTER_NAME, "the cluster's name"),
        interruption=spec.boolean("interruption", default.interruption),
        drift=spec.boolean("drift", default.drift),
        consolidation=spec.boolean("consolidation", default.consolidation),
        expiration=spec.boolean("expiration", default.expiration),
        emptiness=spec.boolean("emptiness", default.emptiness),
        freeze=windows(spec, "freeze"),
        webhook=webhook(spec),
    )


def _name(metadata: Section, pattern: re.Pattern[str], expected: str) -> str:
    value = metadata.raw("name")
    if not isinstance(value, str) or not pattern.fullmatch(value):
        metadata.refuse("name", expected)
        return ""
    return value


def _conflicts(parsed: Sequence[tuple[str, Document]], cluster: str) -> list[str]:
    """Return the conflicts between documents."""
    lines: list[str] = []
    first: dict[str, str] = {}  # kind and name -> source
    for source, document in parsed:
        problems = Problems(source=source)
        match document:
            case NodePolicy():
                key, expected = f"{NODE_POLICY} {document.name}", "a name that no other policy has"
            case ClusterSettings():
                key, expected = CLUSTER_SETTINGS, "one document of this kind for a cluster"
                if cluster and document.name not in {"", cluster}:
                    problems.add("metadata.name", shown(document.name), f"{shown(cluster)}, the cluster's name")
            case other:
                assert_never(other)
        if key in first and document.name:
            problems.add("metadata.name", f"{shown(document.name)}, as in {first[key]}", expected)
        first.setdefault(key, source)
        lines += problems.lines
    return lines


def refers(text: str) -> bool:
    """Return whether a deployment may read a part of the text as a reference."""
    return any(opening in text for opening in OPENINGS)


def refuse_references(document: Any, problems: Problems) -> None:
    """Record each text of the document, keys too, that may be read as a reference. A path that has been refused
    already is not reported again.
    """
    for path, found in _texts(document, problems):
        if refers(found) and not any(line.startswith(f"{problems.source}: {path}: ") for line in problems.lines):
            problems.add(path, shown(found), EXPECTED)


def _texts(document: Any, problems: Problems) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of each key and value, in the document's order."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        path, value = waiting.pop()
        inner: list[tuple[str, Any]] = []
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, Mapping):
            section = Section(value, path, problems)
            inner = [
                entry for key, item in value.items() for entry in ((section.at(key), key), (section.at(key), item))
            ]
        elif isinstance(value, list | tuple):
            inner = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
        waiting += reversed(inner)
