"""`leeward policy validate|diff|apply FILE…`: check policy files offline, compare them with the policies in force, and
write them where the deployment names none.

Decides how problems and differences are printed; `leeward.policy` decides what a document may contain."""

import argparse
from collections.abc import Callable, Sequence
from difflib import unified_diff
from functools import partial
from typing import Any, TypeVar

import yaml

from leeward.adapters.folder.policy_files import find_files, read_documents
from leeward.cli.confirmation import add_yes
from leeward.cli.context import context_of
from leeward.cli.output import emit, tell
from leeward.cli.policy_apply import apply
from leeward.errors import InvalidInputError, InvalidPolicyError
from leeward.policy.document import ClusterPolicies, ClusterSettings
from leeward.policy.parse import parse_documents
from leeward.policy.write import parameters, to_json

T = TypeVar("T")
ACTIONS = ("validate", "diff", "apply")
VALID, DIFFERENT, INVALID = 0, 1, 2  # exit codes
WIDTH = 120  # columns of the YAML that is compared
DESCRIPTION = """Checks policy files, compares them with what is in force, or applies them.

validate prints every mistake of all files at once, offline; exit code 2 if there is one. With --cluster it also
checks the name in ClusterSettings. diff prints a unified diff between the policies in force (or those of --snapshot
DIR) and the files, with every default written out; exit code 1 if they differ. apply prints that diff, asks, and
writes the files as the policies of --cluster NAME; functions see all of them within 60 s. Refused where the
deployment's settings name policies for the cluster.

FILE may be a path or a glob; the order counts, because the first policy that selects a group wins."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action, the files and --yes."""
    parser.add_argument("action", metavar="|".join(ACTIONS), choices=ACTIONS, help="what to do")
    parser.add_argument("files", metavar="FILE", nargs="+", help="YAML files of policies, or globs")
    add_yes(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the files, then compare them if that is asked for; return the exit code."""
    if arguments.action == "apply" and (arguments.snapshot is not None or not arguments.cluster):
        raise InvalidInputError("policy apply: found no --cluster, expected --cluster NAME: policies are applied live")
    context = context_of(arguments, "policy diff") if arguments.action == "diff" else None
    policies, problems = load(arguments.files, arguments.cluster or "")
    if policies is None:
        for problem in problems:
            tell(problem)
        return INVALID
    if arguments.action == "apply":
        return apply(arguments, policies, diff)
    if context is None:
        documents = [{"kind": raw["kind"], "name": raw["metadata"]["name"]} for raw in _raw(policies)]
        lines = [f"valid: {document['kind']} {document['name']}" for document in documents]
        emit({"documents": documents}, arguments.view, lambda: lines or ["valid: nothing but defaults"])
        return VALID
    difference = diff(context.ports.clusters.policies(context.cluster), policies)
    text = difference or "the files say what is in force"
    emit({"differs": bool(difference), "diff": difference}, arguments.view, text.splitlines)
    return DIFFERENT if difference else VALID


def load(files: Sequence[str], cluster: str) -> tuple[ClusterPolicies | None, list[str]]:
    """Return the policies in the order of the files, and every problem of all files, one line each. None: the files
    cannot be used. `cluster` may be empty: then its name is not checked. A file without a document is a problem: a
    redirection that failed leaves one behind, and applied it would remove every policy.
    """
    problems: list[str] = []
    paths = [path for name in files for path in _collect(partial(find_files, [name]), problems) or ()]
    documents: list[tuple[str, Any]] = []
    for path in dict.fromkeys(paths):
        read = _collect(partial(read_documents, path), problems)
        if read == []:
            problems.append(f"{path}: document: found none in the file, expected at least one policy document")
        documents += read or ()
    policies = _collect(partial(parse_documents, documents, cluster=cluster), problems)
    if policies is not None:
        _collect(partial(parameters, policies), problems)
    return (None if problems else policies), problems


def diff(in_force: ClusterPolicies, wanted: ClusterPolicies) -> str:
    """Return the unified diff of the two as normalised YAML, empty if they mean the same."""
    before, after = (normalised(policies).splitlines(keepends=True) for policies in (in_force, wanted))
    return "".join(unified_diff(before, after, "in force", "files"))


def normalised(policies: ClusterPolicies) -> str:
    """Return every document as YAML with all defaults, settings first, policies in the order in which they are
    tried.
    """
    return yaml.safe_dump_all(_raw(policies), sort_keys=False, allow_unicode=True, width=WIDTH, explicit_start=True)


def _raw(policies: ClusterPolicies) -> list[dict[str, Any]]:
    settings = policies.settings
    named = [] if settings == ClusterSettings(name=settings.name) else [to_json(settings)]
    return [*named, *(to_json(policy) for policy in policies.policies)]


def _collect(read: Callable[[], T], problems: list[str]) -> T | None:
    try:
        return read()
    except InvalidPolicyError as error:
        problems += str(error).splitlines()
        return None
