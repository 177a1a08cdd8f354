"""Commands that have no answer from a folder: `ANSWERS[name](monkeypatch, folder)` puts fakes in the place of AWS,
Kubernetes and the deployment, and returns the arguments. With those of `test_golden.py` they are all commands."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace

from leeward.adapters import wiring
from leeward.doctor import expected
from leeward.errors import AccessDeniedError
from leeward.model.facts import FactKind, Sheet
from leeward.model.launch import LaunchSource
from leeward.model.termination import Cause, CauseKind
from leeward.model.zonal_shift import GroupSizes
from leeward.policy.document import ClusterPolicies, ClusterSettings
from leeward.ports.kubernetes import Listed
from tests.cli.command import NOON, SMALL
from tests.cli.snapshots.disruption import a_node as a_raw_node
from tests.cli.snapshots.disruption import a_pod as a_raw_pod
from tests.cli.snapshots.live_world import LiveWorld
from tests.cli.snapshots.zones import a_zone_system
from tests.cli.test_uninstall import a_system
from tests.cli.test_upgrade_live import TEMPLATE, a_record
from tests.fakes.builders import (
    CLUSTER,
    GROUP,
    PUT_BY_SYNC,
    a_group,
    a_node,
    a_policy,
    a_subject,
    an_instance,
    our_hook,
    pausing,
    policies,
)
from tests.fakes.clock import START
from tests.fakes.deployment import FakeDeployment, a_queue
from tests.fakes.system import FakeSystem
from tests.unit.cli.report.run import a_full_record
from tests.unit.reconcile.zones import evacuate

NOW = ("--now", "2026-03-02T10:05:00Z")
LIVE = ("--cluster", CLUSTER, *NOW)
POLICY = """apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {name: web}
spec:
  selector: {groups: ["web-*"]}
"""


def serve(monkeypatch, system, deployment=None):
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_, **__: system.ports)
    if deployment is not None:
        monkeypatch.setattr(wiring, "command_line_deployment", lambda *_, **__: deployment)
    return system


def doctor(monkeypatch, folder):
    """Everything is in order, but messages that cannot be read, and alarms that must not be."""
    system = FakeSystem(
        instances=[an_instance()],
        groups=[a_group(GROUP, "i-0abc")],
        hooks=[our_hook(heartbeat_timeout=PUT_BY_SYNC)],
        nodes=[a_node()],
    )
    for kind in FactKind:
        system.catalog.keep(CLUSTER, kind, Sheet(synced=START, content={}))
    deployment = FakeDeployment(CLUSTER, listed=system.groups.by_name.values())
    deployment.queues[expected.DEAD_LETTERS] = a_queue(expected.DEAD_LETTERS, messages=4)
    deployment.fail("alarms", AccessDeniedError("cloudwatch:DescribeAlarms on leeward-: AccessDenied: no"))
    serve(monkeypatch, system, deployment)
    return ("doctor", *NOW)


def uninstall(monkeypatch, folder):
    serve(monkeypatch, a_system())
    return ("uninstall", "--cluster", CLUSTER, "--dry-run")


def snapshot(monkeypatch, folder):
    world = LiveWorld()
    serve(monkeypatch, world.system)
    monkeypatch.setattr(wiring, "command_line_raw", lambda *_: world.aws)
    return ("snapshot", "--to", folder / "cluster", "--cluster", CLUSTER, "--now", NOON)


def drain(monkeypatch, folder):
    """A drain that is started and not awaited."""
    serve(monkeypatch, FakeSystem(instances=[an_instance()], groups=[a_group(GROUP, "i-0abc")], nodes=[a_node()]))
    return ("drain", "i-0abc", "--yes", "--wait=false", *LIVE)


def drain_again(monkeypatch, folder):
    """A second drain of a node, beside one that is new."""
    nodes, group = [a_node(), a_node("i-0def")], a_group(GROUP, "i-0abc", "i-0def")
    system = FakeSystem(instances=[an_instance(), an_instance("i-0def")], groups=[group], nodes=nodes)
    cause = Cause(id="manual#1", kind=CauseKind.MANUAL, at=START)
    record = system.claims.claim(a_subject(), cause, START)
    system.claims.note_attempt(record.instance, 1, times={"draining": START}, blocked_by=["shop/web: pdb shop/web"])
    system.executions.open.add("i-0abc-1")
    serve(monkeypatch, system)
    return ("drain", "i-0abc", "i-0def", "--yes", "--wait=false", *LIVE)


def drain_cancelled(monkeypatch, folder):
    """Request a drain of two nodes, of which one is draining already."""
    arguments = drain_again(monkeypatch, folder)
    return tuple("--cancel" if word == "--yes" else word for word in arguments)


def disruptable():
    group = a_group("web-a", "i-n1", "i-n2")
    members = tuple(replace(one, type="m5.large") for one in group.instances)
    system = FakeSystem(
        instances=[replace(an_instance(one.id, spot=False), image="ami-1") for one in members],
        groups=[replace(group, instances=members)],
        written=policies(a_policy("web")),
    )
    system.kubernetes.raw = {
        Listed.NODES: [a_raw_node("n1"), a_raw_node("n2")],
        Listed.PODS: [a_raw_pod("p1", "n1"), a_raw_pod("p2", "n2")],
    }
    return system


def plan_apply(monkeypatch, folder):
    serve(monkeypatch, disruptable())
    return ("plan", "--apply", "--yes", *LIVE)


def plan_apply_refused(monkeypatch, folder):
    system = disruptable()
    system.clusters.policies_of[CLUSTER] = pausing(policies(a_policy("web")))
    serve(monkeypatch, system)
    return ("plan", "--apply", "--yes", *LIVE)


def switch(monkeypatch):
    system = FakeSystem(groups=[a_group(GROUP, "i-0abc")])
    serve(monkeypatch, system, FakeDeployment(CLUSTER, listed=system.groups.by_name.values()))
    return system


def pause(monkeypatch, folder):
    switch(monkeypatch)
    return ("pause", "--for", "2h", "--why", "game day", *NOW)


def resume(monkeypatch, folder):
    system = switch(monkeypatch)
    paused = pausing(policies()).pauses
    system.pauses.write(replace(system.pauses.read(CLUSTER), pauses=paused.pauses))
    return ("resume", "--why", "over", *NOW)


def upgradable(monkeypatch, *, recorded):
    group = replace(a_group(GROUP, "i-0abc"), launch=LaunchSource(template=TEMPLATE))
    system = FakeSystem(instances=[an_instance()], groups=[group], nodes=[a_node()])
    if recorded:
        a_record(system)
        system.upgrade_executions.open.add(f"{GROUP}-1")
    return serve(monkeypatch, system)


def upgrade(action, *consent):
    def prepare(monkeypatch, folder):
        upgradable(monkeypatch, recorded=action != "start")
        return ("upgrade", action, GROUP, *consent, *LIVE)

    return prepare


def upgrade_blocked(monkeypatch, folder):
    """No policy selects the group."""
    system = upgradable(monkeypatch, recorded=False)
    system.clusters.policies_of[CLUSTER] = policies(a_policy("other", "other"))
    return ("upgrade", "start", GROUP, "--yes", *LIVE)


def policy(action, *more):
    def prepare(monkeypatch, folder):
        (folder / "web.yaml").write_text(POLICY)
        empty = ClusterPolicies(settings=ClusterSettings(name=CLUSTER))
        serve(monkeypatch, FakeSystem(written=empty), FakeDeployment(CLUSTER))
        return ("policy", action, folder / "web.yaml", *more)

    return prepare


def report(monkeypatch, folder):
    (folder / "record.json").write_text(json.dumps(a_full_record().to_json()))
    return ("report", folder / "record.json", "--to", folder / "report.html")


def metrics(monkeypatch, folder):
    """An upgrade alone."""
    system = upgradable(monkeypatch, recorded=True)
    past = SimpleNamespace(of_cluster=lambda _: ())
    monkeypatch.setattr(wiring, "command_line_history", lambda *_, **__: (system.ports, past))
    return ("metrics", *LIVE)


def init(monkeypatch, folder):
    return ("init", "--snapshot", SMALL, "--to", folder / "first.yaml", "--now", NOON)


def zone(action, *more):
    """All but the start meet an evacuation that is under way."""

    def prepare(monkeypatch, folder):
        system = serve(monkeypatch, a_zone_system(), FakeDeployment(CLUSTER))
        if action != "evacuate":
            evacuate(system, why="packet loss", sizes={"web": GroupSizes(minimum=0, desired=4, maximum=10)})
        return ("zone", action, *more, *LIVE)

    return prepare


ANSWERS: Mapping[str, Callable] = {
    "doctor": doctor,
    "uninstall": uninstall,
    "snapshot": snapshot,
    "drain-started": drain,
    "drain-again": drain_again,
    "drain-cancelled": drain_cancelled,
    "plan-apply": plan_apply,
    "plan-apply-refused": plan_apply_refused,
    "pause": pause,
    "resume": resume,
    "upgrade-start": upgrade("start", "--yes"),
    "upgrade-start-blocked": upgrade_blocked,
    "upgrade-status-live": upgrade("status"),
    "upgrade-pause": upgrade("pause"),
    "upgrade-resume": upgrade("resume"),
    "upgrade-abort": upgrade("abort", "--yes"),
    "upgrade-rollback": upgrade("rollback", "--yes"),
    "policy-validate": policy("validate"),
    "policy-diff": policy("diff", *LIVE),
    "policy-apply": policy("apply", "--yes", *LIVE),
    "zone-evacuate-started": zone("evacuate", "us-east-1a", "--why", "packet loss", "--yes"),
    "zone-return": zone("return", "us-east-1a"),
    "zone-status-evacuated": zone("status"),
    "report": report,
    "metrics": metrics,
    "init": init,
    "version": lambda *_: ("version",),
}
