"""Kubernetes Events: each reason has a rule that says when it is true and notices a lie, and a row in the docs."""

import ast
import importlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from leeward.model.node import disruption_taint
from leeward.model.termination import Cause, CauseKind, Replacement
from leeward.upgrade import completion
from leeward.upgrade.managed import steps as managed
from tests.fakes.builders import DEPLOYMENT, a_group, a_node, a_subject, an_instance
from tests.fakes.system import FakeSystem
from tests.state_machines.test_walks import a_pod
from tests.truthful_events import RULES, falsehood

PACKAGE = Path("functions/leeward")
REASON = re.compile(r"([A-Z][a-z]+){1,5}(IPs)?")
NO_REASONS = {
    "Detach",
    "InService",
    "Launch",
    "NoExecute",
    "NoSchedule",
    "Ready",
    "StatefulSet",
    "Terminated",
    "Terminating",
    "Warmed",
}  # of Auto Scaling and Kubernetes
ERRORS_OF_UPGRADES = {"UpgradeFailure", *completion.ERRORS.values(), *managed.CREATION, *managed.LAUNCH_CODES.values()}
I = "i-0abc"  # noqa: E741


def writes_events(tree):
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    named = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "event")
    return any(keyword.arg == "reason" for call in named for keyword in call.keywords)


def reasons_in(path):
    """Texts in the form of a reason among the constants that a module that writes Events has or imports."""
    tree = ast.parse(path.read_text())
    if not writes_events(tree):
        return set()
    module = importlib.import_module(".".join(path.with_suffix("").parts[1:]))
    constants = [value for name, value in vars(module).items() if name.isupper()]
    texts = [value for value in constants if isinstance(value, str)]
    texts += [text for value in constants if hasattr(value, "values") for text in value.values()]
    texts += [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    errors = ERRORS_OF_UPGRADES if "upgrade" in path.parts else set()
    return {text for text in texts if isinstance(text, str) and REASON.fullmatch(text)} - errors


@pytest.fixture(scope="module")
def written():
    """Reasons of all Events that the packages write."""
    modules = [path for path in PACKAGE.rglob("*.py") if not {"adapters", "ports"} & set(path.parts)]
    return set().union(*map(reasons_in, modules)) - NO_REASONS


def test_each_reason_has_a_rule_and_each_rule_a_reason(written):
    assert sorted(written) == sorted(RULES)


def test_each_reason_is_among_the_symptoms(written):
    page = Path("docs/troubleshooting.md").read_text()
    table = page.partition("## Events on nodes and pods")[2].partition("\n## ")[0]
    reasons = " ".join(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", table, re.MULTILINE))
    assert sorted(re.findall(r"\w+", reasons)) == sorted(written)


def a_node_in_service(**node):
    """A node that nothing terminates, without a pod."""
    return FakeSystem(instances=[an_instance(I)], groups=[a_group("web-a", I)], nodes=[a_node(I, **node)])


def replaced():
    """A node whose termination is open and whose replacement was launched in its own zone."""
    system = a_node_in_service()
    system.claims.claim(a_subject(I), Cause(id="m", kind=CauseKind.MANUAL, at=system.clock.now()), system.clock.now())
    record = system.claims.records[I]
    system.claims.records[I] = replace(record, replacement=Replacement(launched=("i-0new",)))
    return system


LIES = {
    **dict.fromkeys(RULES, a_node_in_service),
    **dict.fromkeys(("NoSubnetIPs", "ReplacementRefused", "LaunchRefused", "Unconsolidatable"), replaced),
    **dict.fromkeys(("DisruptionBlocked", "DriftNotFixable"), replaced),
    "TerminationCancelled": lambda: a_node_in_service(taints=(disruption_taint(DEPLOYMENT),)),
}


@pytest.mark.parametrize("reason", sorted(RULES))
def test_each_rule_notices_a_lie(reason):
    system = LIES[reason]()
    about = a_pod() if reason == "NotSurged" else system.kubernetes.by_name[f"node-{I}"]
    assert falsehood(system, about, reason, f"Leeward will drain this node: {I}")


@pytest.mark.parametrize("reason", ["SpotInterruption", "GroupTerminating"])
@pytest.mark.parametrize("over", ["draining", "drained"])
def test_an_announcement_of_a_drain_that_has_begun_or_ended_is_a_lie(reason, over):
    system = replaced()
    system.claims.note(I, times={over: system.clock.now()})
    assert falsehood(system, system.kubernetes.by_name[f"node-{I}"], reason, f"Leeward will drain this node: {I}")
