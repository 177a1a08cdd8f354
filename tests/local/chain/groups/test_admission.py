"""An admission webhook of one namespace that is gone: every other pod leaves its node as if nothing had happened."""

import json
import time

import pytest

from local import fleet
from local.demo import scenario

pytestmark = pytest.mark.local

WEBHOOK = "engine.policies.example"
EVICTIONS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}


def a_webhook(space):
    """It guards the evictions of one namespace, and its Service is not there."""
    service = {"name": "gone", "namespace": space, "path": "/check"}
    webhook = {
        "name": WEBHOOK,
        "clientConfig": {"service": service, "caBundle": ""},
        "rules": [EVICTIONS],
        "failurePolicy": "Fail",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": space},
        "webhooks": [webhook],
    }


@pytest.fixture
def guarded(stack, crew):
    """A node with four pods of its own and one, the first in every order, that the webhook guards."""
    planted = []

    def build(name, *, spot=False):
        team = crew(1, spot=spot, name=name)
        (victim,), space = team.instances, f"aaa-{team.group}"
        team.run_pods(fleet.deployment(f"free-{team.group}", 4, cpu="50m", grace=1), instance=victim)
        held = fleet.deployment("held", 1, cpu="50m", grace=1, on={"group": team.group})
        held["metadata"]["namespace"] = space
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
        stack.kubectl("apply", "-f", "-", stdin=fleet.manifests([namespace, held, a_webhook(space)]))
        planted.append(space)
        team.until(lambda: len(pods_on(stack, team.node_name(victim))) == 5, "all five pods")
        return team, victim, space

    yield build
    for space in planted:
        stack.kubectl("delete", "validatingwebhookconfiguration", space, "--ignore-not-found")


def pods_on(stack, node):
    """namespace of each pod there that nothing has asked to leave; agents apart."""
    query = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}"
    pods = stack.kubernetes("GET", query)["items"]
    mine = [pod["metadata"] for pod in pods if pod["metadata"]["name"].startswith(("free-", "held-"))]
    return [meta["namespace"] for meta in mine if "deletionTimestamp" not in meta]


@pytest.mark.parametrize(
    ("name", "spot"),
    [
        pytest.param("guarded", False, id="plain"),
        pytest.param("forced", False, id="force", marks=pytest.mark.long),  # in simulated worlds (failing webhook)
        pytest.param("guarded", True, id="spot"),
    ],
)
def test_a_namespace_whose_eviction_webhook_is_gone_delays_no_other_pod(stack, guarded, leeward, name, spot):
    team, victim, space = guarded(name, spot=spot)
    node = team.node_name(victim)
    event = scenario.spot_warning(stack, victim) if spot else scenario.maintenance(stack, (victim,))
    stack.emit(event)
    team.until(lambda: (found := team.record(victim)) is not None and "tainted" in found.times, "its mark")
    marked = time.monotonic()
    team.until(lambda: pods_on(stack, node) == [space], "every other pod gone")
    assert time.monotonic() - marked < 30  # less than a drain's time, which a starved pod would have waited for
    (blocker,) = team.until(lambda: webhooks(leeward, node), "the webhook among the blockers")
    assert (blocker["object"], blocker["pod"].split("/")[0]) == (f"webhook {WEBHOOK}", space)
    assert "failurePolicy: Ignore" in blocker["fix"]
    if name == "guarded":
        stack.kubectl("delete", "validatingwebhookconfiguration", space)
    assert team.closed(victim).outcome == "terminated"


def webhooks(leeward, node):
    """What `leeward blockers` says of webhooks."""
    code, out, err = leeward("blockers", node)
    assert code == 0, err
    return [one for one in json.loads(out)["blockers"] if one["kind"] == "webhook"]
