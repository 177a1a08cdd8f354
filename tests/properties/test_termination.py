"""Invariants of a termination over random nodes, causes, budgets and faults, walked through the real definition."""

import os
from dataclasses import replace
from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leeward.errors import AwsUnavailableError, ThrottledError
from leeward.model.group import TERMINATING, LifecycleHook
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.termination import Cause, CauseKind, Outcome, Status
from leeward.policy.document import DrainPolicy
from leeward.termination.capacity_ledger import surplus
from leeward.termination.decisions import is_broken
from tests.fakes.builders import GROUP, a_group, a_node, a_policy, a_subject, an_instance, our_hook, policies
from tests.fakes.clock import START
from tests.fakes.ledger import a_surge
from tests.fakes.system import FakeSystem
from tests.state_machines.walker import Walker

EXAMPLES = int(os.environ.get("EXAMPLES", "60"))  # make test-long asks for more
INSTANCE = "i-0abc"
NODE = f"node-{INSTANCE}"
FOREIGN = LifecycleHook(name="other-team", group=GROUP, transition=TERMINATING)
DEADLINES = {CauseKind.SPOT_INTERRUPTION: timedelta(minutes=2), CauseKind.SCHEDULED_CHANGE: timedelta(days=3)}
HOOK_LIMIT = timedelta(hours=48)  # for which Auto Scaling lets a lifecycle hook wait at most, whatever its heartbeats
STEPS = ["claim", "replace", "terminate", "drain", "answer", "remove-node", "finish", "return-to-service"]

pods = st.lists(
    st.builds(
        Pod,
        namespace=st.just("shop"),
        name=st.sampled_from(["a", "b", "c", "d"]),
        uid=st.uuids().map(str),
        node=st.just(NODE),
        phase=st.sampled_from(["Running", "Pending", "Succeeded"]),
        labels=st.sampled_from([{"app": "web"}, {"app": "api"}]),
        grace_seconds=st.integers(0, 60),
        ready=st.booleans(),
    ),
    max_size=4,
    unique_by=lambda pod: pod.name,
)
budgets = st.lists(
    st.builds(
        PodDisruptionBudget,
        namespace=st.just("shop"),
        name=st.sampled_from(["one", "two"]),
        selector=st.sampled_from([{"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "api"}}, {}]),
        disruptions_allowed=st.integers(0, 2),
    ),
    max_size=2,
    unique_by=lambda budget: budget.name,
)
kinds = st.sampled_from([kind for kind in CauseKind if kind is not CauseKind.ASG_TERMINATE])


class World:
    """One drawn situation, and what breaks in it at which transition."""

    def __init__(self, draw):
        self.force = draw(st.booleans())
        self.hooks = [*([our_hook()] if draw(st.booleans()) else []), *([FOREIGN] if draw(st.booleans()) else [])]
        drain = DrainPolicy(force=self.force, settle=timedelta(seconds=draw(st.integers(0, 120))))
        self.system = FakeSystem(
            instances=[an_instance(INSTANCE)],
            groups=[a_group(GROUP, INSTANCE)],
            hooks=self.hooks,
            nodes=[a_node(INSTANCE)],
            written=policies(replace(a_policy(), drain=drain)),
        )
        if draw(st.booleans()):
            self.system.groups.refuse_launch = "no capacity"
        for pod in draw(pods):
            self.system.kubernetes.put_pod(pod)
        self.system.kubernetes.budget_list = draw(budgets)
        self.claim(draw(kinds), "first")
        self.killed = draw(st.lists(st.sampled_from(STEPS), max_size=4))
        self.outage = draw(st.integers(0, 20))
        self.joins = draw(st.lists(st.tuples(st.integers(1, 30), kinds), max_size=2))
        self.throttled = draw(st.sets(st.integers(0, 30), max_size=3))
        self.freed_after = timedelta(minutes=draw(st.integers(1, 60)))
        self.seen = 0

    def claim(self, kind, name):
        now = self.system.clock.now()
        deadline = now + DEADLINES[kind] if kind in DEADLINES else None
        cause = Cause(id=f"event-{name}", kind=kind, at=now, deadline=deadline)
        if kind is CauseKind.SURPLUS:
            cause = surplus(a_surge(f"i-0{name}"), now)
        return self.system.claims.claim(a_subject(INSTANCE), cause, now)

    def before(self, _state, _data):
        """Time passes, things break, causes join; the other team answers its hook, and Auto Scaling ends every
        hook after 48 hours.
        """
        self.seen += 1
        system = self.system
        system.kubernetes.down = 3 <= self.seen < 3 + self.outage
        if self.seen in self.throttled:
            system.instances.fail("describe", ThrottledError("slow down"), times=2)
            system.groups.fail("describe", AwsUnavailableError("500"), times=1)
        for number, (moment, kind) in enumerate(self.joins):
            if self.seen == moment and system.claims.records[INSTANCE].status is Status.OPEN:
                record = self.claim(kind, f"join-{number}")
                system.ports.executions.wake(record.token or "")
        if system.clock.now() > START + self.freed_after and FOREIGN in self.hooks:
            system.groups.complete(group=GROUP, hook="other-team", instance=INSTANCE, result="CONTINUE")
        if system.clock.now() > START + HOOK_LIMIT:
            for group, hook, instance in tuple(system.groups.waiting):
                system.groups.complete(group=group, hook=hook, instance=instance, result="CONTINUE")


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_whatever_breaks_a_termination_keeps_its_promises(data):
    world = World(data.draw)
    system = world.system
    walk = Walker(system, before=world.before, killed=list(world.killed)).run(INSTANCE)
    record = system.claims.records[INSTANCE]

    assert len(system.groups.launches) <= 1, "a replacement is launched at most once"
    owed = len(system.groups.launches) + sum(cause.kind is CauseKind.SURPLUS for cause in record.causes)
    assert sum(decrement for _, decrement in system.groups.terminated) <= owed, "the group shrinks only to pay"
    assert len(system.groups.terminated) <= 1
    assert "other-team" not in {hook for _, hook, _ in system.groups.heartbeats}
    if not world.force:
        assert not [line for line in system.kubernetes.done if line.startswith("delete")]
    node = system.kubernetes.by_name.get(NODE)
    match walk.ended:
        case "Terminated" | "Delegated":
            assert (record.status, record.outcome) == (Status.CLOSED, Outcome.TERMINATED)
            assert node is None, "the Node object is gone"
            assert not [hook for _, hook, _ in system.groups.waiting if hook != "other-team"], "our hooks are answered"
        case "PodEvictionFailure" if is_broken(record):
            assert node is None or node.tainted, "a broken node takes no pods"
            assert record.status is Status.OPEN
            assert not system.groups.terminated
        case "PodEvictionFailure":
            assert node is None or not (node.tainted or node.unschedulable), "the node is back in service"
            assert record.status is Status.CLOSED or record.times["retry"] > system.clock.now()
            assert not system.groups.terminated
        case "Cancelled":
            assert node is None or not (node.tainted or node.unschedulable), "the node is back in service"
            assert record.outcome is Outcome.RETURNED_TO_SERVICE
            assert not system.groups.terminated
        case other:
            raise AssertionError(f"{other}: {walk.cause}")


def test_a_node_whose_pod_can_never_be_evicted_is_terminated_when_the_hook_ends():
    """EC2 takes the instance, so it is not returned to service: our hook holds it as long as Auto Scaling allows."""
    pod = Pod(namespace="shop", name="a", uid="u", node=NODE, phase="Running", labels={"app": "web"}, grace_seconds=0)
    both = [PodDisruptionBudget(namespace="shop", name=name, selector={}, disruptions_allowed=0) for name in "12"]
    reserved = (19, CauseKind.CAPACITY_RESERVATION)
    drawn = iter([False, True, False, 0, False, [pod], both, CauseKind.UPGRADE, [], 16, [reserved] * 2, set(), 1])
    world = World(lambda _strategy: next(drawn))
    walk = Walker(world.system, before=world.before, killed=[]).run(INSTANCE)
    assert walk.ended == "Terminated", walk.cause
    assert world.system.clock.now() > START + HOOK_LIMIT
