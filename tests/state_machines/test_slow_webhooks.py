"""An admission webhook that takes long to allow an eviction: its pods leave, and cost the others next to nothing."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.adapters.kubernetes.api import EVICTION_SECONDS
from leeward.errors import ClusterUnreachableError
from leeward.model.blocked import unanswered
from leeward.model.termination import CauseKind
from leeward.termination.removals import MOST_SLOW
from tests.fakes.builders import our_hook
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_pod, a_system, claim, spot
from tests.state_machines.walker import Walker

HINT = "an admission webhook on pods/eviction may be slow"


class SlowWebhook:
    """It allows every eviction in namespace `aaa` after so many seconds; a request that ends before leaves the pod."""

    def __init__(self, system, seconds):
        self._system, self._seconds, self._evict = system, seconds, system.kubernetes.evict
        self.tries, self.at = Counter(), {}
        system.kubernetes.evict = self

    def __call__(self, pod, grace_seconds=None):
        self.tries[pod.key] += 1
        if pod.namespace == "aaa":
            self._system.kubernetes.take_time(min(self._seconds, EVICTION_SECONDS))
            if self._seconds > EVICTION_SECONDS:
                raise ClusterUnreachableError(unanswered(EVICTION_SECONDS, HINT))
        self._evict(pod, grace_seconds)
        self.at.setdefault(pod.key, self._system.clock.now() - START)


def a_node_with(seconds, slow=2, **more):
    guarded = [replace(a_pod(f"slow-{n}", labels={"app": f"s{n}"}), namespace="aaa") for n in range(slow)]
    system = a_system(pods=[*guarded, *(a_pod(f"web-{n}", labels={"app": f"w{n}"}) for n in range(28))], **more)
    return system, SlowWebhook(system, seconds)


@pytest.mark.parametrize("seconds", [2, 15, 30])
@pytest.mark.parametrize("start", [spot, lambda system: claim(system, CauseKind.MANUAL)], ids=["spot", "manual"])
def test_its_pods_leave_by_their_first_request_and_the_others_within_seconds(seconds, start):
    system, webhook = a_node_with(seconds)
    start(system)
    assert Walker(system).run(I).ended == "Terminated"
    assert set(webhook.tries.values()) == {1}
    others = [at for key, at in webhook.at.items() if key.startswith("shop/")]
    assert len(others) == 28
    assert max(others) <= timedelta(seconds=5)
    assert system.claims.records[I].times["drained"] - START <= timedelta(seconds=seconds + 15)


def test_many_such_pods_leave_a_few_at_a_time():
    system, webhook = a_node_with(12, slow=20)
    claim(system, CauseKind.MANUAL)
    assert Walker(system).run(I).ended == "Terminated"
    assert max(at for key, at in webhook.at.items() if key.startswith("shop/")) <= timedelta(seconds=5)
    assert system.claims.records[I].times["drained"] - START <= timedelta(seconds=20 / MOST_SLOW * 12 + 45)


def test_on_spot_no_request_is_waited_for_past_the_release_and_the_sentence_names_admission():
    system, _ = a_node_with(1000, hooks=[our_hook()])
    spot(system)
    lines = []
    Walker(system, before=lambda *_: lines.extend(system.claims.records[I].blocked_by)).run(I)
    assert {line.partition(":")[0] for line in lines} == {"aaa/slow-0", "aaa/slow-1"}
    assert all(line.endswith(HINT) and "eviction fails: the API server did not answer within" in line for line in lines)
    assert not [line for line in lines if "object at 0x" in line]
    answered = system.groups.answered
    assert answered
    assert system.clock.now() - START <= timedelta(minutes=3)
