"""A hook of ours that begins to hold the instance while the state machine retries a step, against an API server that
is away for longer than the hook waits."""

from datetime import timedelta
from itertools import pairwise

import pytest

from leeward.errors import ClusterUnreachableError
from leeward.model.group import HookResult
from leeward.model.termination import CauseKind
from tests.fakes.builders import GROUP, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_detach_deadlines import THEIRS, Happens
from tests.state_machines.test_joining_causes import join
from tests.state_machines.test_periods import scale_in
from tests.state_machines.test_walks import I, a_budget, a_pod, a_system, claim, ec2_says
from tests.state_machines.walker import Walker

MINUTE_HOOK = our_hook(heartbeat_timeout=60)
OUTAGE = timedelta(minutes=2)


class Outage:
    """Server that fails one call for two minutes, and a group that begins its hook 20 s after the first failure."""

    def __init__(self, system, monkeypatch, owner, call):
        self.system, self.began, self.held = system, None, None
        self._call = getattr(owner, call)
        monkeypatch.setattr(owner, call, self)

    def __call__(self, *arguments, **options):
        now = self.system.clock.now()
        self.began = self.began or now
        if self.held is None and now - self.began >= timedelta(seconds=20):
            self.held = now
            self.system.groups.begin_terminating(GROUP, I)
            join(self.system, CauseKind.ASG_TERMINATE, id="token-1", minutes=1, hook=MINUTE_HOOK.name, hook_ours=True)
        if now - self.began < OUTAGE:
            raise ClusterUnreachableError("connection refused")
        return self._call(*arguments, **options)


def test_the_hook_of_an_ended_instance_is_answered_while_its_node_cannot_be_removed(monkeypatch):
    system = a_system(hooks=[MINUTE_HOOK])
    ec2_says(system, "shutting-down")
    outage = Outage(system, monkeypatch, system.kubernetes, "node")
    answered, complete = [], system.groups.complete
    monkeypatch.setattr(
        system.groups, "complete", lambda **given: answered.append(system.clock.now()) or complete(**given)
    )
    assert Walker(system).run(I).ended == "Terminated"
    assert answered[0] - outage.held < timedelta(seconds=35)
    assert system.clock.now() - outage.began >= OUTAGE
    assert I not in {node.instance_id for node in system.kubernetes.by_name.values()}


def test_an_instance_that_ends_while_another_teams_hook_holds_it_is_finished_once_ours_is_answered():
    """EC2 can end an instance that a hook still holds; Auto Scaling reports Terminating:Wait until that hook ends."""
    system = a_system(hooks=[MINUTE_HOOK, THEIRS])
    scale_in(system)
    ends = (START + timedelta(minutes=2), lambda: ec2_says(system, "shutting-down"))
    assert Walker(system, before=Happens(system, ends)).run(I).ended == "Terminated"
    assert system.groups.answered == [(GROUP, MINUTE_HOOK.name, I, HookResult.CONTINUE)]
    assert system.clock.now() <= START + timedelta(minutes=2, seconds=30)


@pytest.mark.parametrize(
    ("owner", "call", "step"), [("kubernetes", "untaint", "return-to-service"), ("groups", "launch", "replace")]
)
def test_a_hook_of_a_minute_is_heartbeaten_while_a_step_is_retried(monkeypatch, owner, call, step):
    system = a_system(hooks=[MINUTE_HOOK], pods=[a_pod()], budgets=[a_budget(0)])
    claim(system, CauseKind.MANUAL if step == "return-to-service" else CauseKind.REBALANCE_RECOMMENDATION)
    outage = Outage(system, monkeypatch, getattr(system, owner), call)
    beaten, heartbeat = [], system.groups.heartbeat
    monkeypatch.setattr(
        system.groups, "heartbeat", lambda **given: beaten.append(system.clock.now()) or heartbeat(**given)
    )
    Walker(system).run(I)
    until = outage.began + OUTAGE
    during = [outage.held, *(at for at in beaten if at < until), until]
    assert max(later - earlier for earlier, later in pairwise(during)) < timedelta(seconds=60)
