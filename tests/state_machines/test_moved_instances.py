"""An instance that its owner has moved to another group while its termination waited: that group's hook is answered."""

from dataclasses import replace
from datetime import timedelta

from leeward.model.termination import Cause, CauseKind
from tests.fakes.builders import GROUP, a_group, a_node, a_subject, an_instance, our_hook
from tests.fakes.clock import START
from tests.fakes.system import FakeSystem
from tests.state_machines.test_walks import I, a_pod
from tests.state_machines.walker import Walker

OTHER = "web-b"


def test_the_hook_of_the_group_that_has_it_now_is_answered():
    hooks = [our_hook(), replace(our_hook(), group=OTHER)]
    system = FakeSystem(
        instances=[an_instance(I, group=OTHER)],
        groups=[a_group(GROUP), a_group(OTHER, I)],
        hooks=hooks,
        nodes=[a_node(I)],
    )
    system.kubernetes.put_pod(a_pod())
    far = START + timedelta(days=10)
    maintenance = Cause(id="maintenance", kind=CauseKind.SCHEDULED_CHANGE, at=START, deadline=far)
    system.claims.claim(a_subject(I), maintenance, START)
    system.groups.begin_terminating(OTHER, I)
    held = Cause(id="hook", kind=CauseKind.ASG_TERMINATE, at=START, hook="leeward-terminate", hook_ours=True)
    system.claims.claim(replace(a_subject(I), group=OTHER), held, START)
    assert Walker(system).run(I).ended == "Terminated"
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert [(group, hook) for group, hook, *_ in system.groups.answered] == [(OTHER, "leeward-terminate")]
