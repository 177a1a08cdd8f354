"""CoreDNS on a spot node beside pods that cannot leave or stop slowly: evicted while its budget allows it.

Each seed draws the ten pods beside it: graces up to the whole notice, pods that ignore SIGTERM, budgets that allow
nothing.
"""

from random import Random

import pytest

from local.cluster.history import FactKind
from local.cluster.settings import IGNORE_SIGTERM
from simulation.fault_rates import Faults
from simulation.world import World
from tests.simulation.fleet_stand_in import Arrival, Fleet, GroupPlan, budget, deployment

GRACE = 30  # seconds of CoreDNS
NOTICE = 120  # seconds that EC2 gives
GRACES = (1, 30, 60, 119, 120)


def coredns() -> tuple[dict, dict]:
    made, limit = deployment("coredns", replicas=2), budget("coredns")
    for thing in (made, limit):
        thing["metadata"]["namespace"] = "kube-system"
    made["spec"]["template"]["spec"] |= {"priorityClassName": "system-cluster-critical"}
    made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = GRACE
    return made, limit


def neighbours(random: Random) -> list[dict]:
    """Twenty pods on two nodes: two that a budget holds, eight of 120 s of grace, ten of any grace."""
    held, slow, other = deployment("held", 2), deployment("slow", 8), deployment("other", 10)
    graces = ((held, random.choice(GRACES)), (slow, NOTICE), (other, random.choice(GRACES)))
    for made, grace in graces:
        template = made["spec"]["template"]
        template["spec"]["terminationGracePeriodSeconds"] = grace
        template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "50m"
        template["metadata"]["annotations"] = {IGNORE_SIGTERM: "true"} if random.random() < 0.5 else {}
    limits = [budget("held", 0), budget("slow", random.choice((0, 1, 4)))]
    return [held, slow, other, *limits, *([budget("other", random.choice((0, 1)))] if random.random() < 0.5 else ())]


def evicted_in_time(seed: int) -> bool:
    """Warn a node with CoreDNS and return whether its eviction left it its grace until EC2 took the instance."""
    random = Random(seed)
    fleet = Fleet(groups=(GroupPlan(size=2, maximum=6),), workloads=(*coredns(), *neighbours(random)))
    warning = Arrival(at_seconds=60, kind="spot_warning", pick=random.randrange(2))
    world = World(seed, fleet, Faults.none(), (warning,))
    began = world.timeline.now()
    outcome = world.run(0.2, converge=900)
    assert (outcome.violations, outcome.unexpected) == ((), ())
    taken = next(line for line in world.story if "is ended by EC2" in line)
    hours, minutes, seconds = (int(part) for part in taken.split()[1].split(":"))
    accepted = [
        fact.at - began
        for fact in world.cluster.history.facts(FactKind.EVICTION_ACCEPTED)
        if fact.about.startswith("kube-system/coredns")
    ]
    return len(accepted) == 1 and accepted[0] + GRACE <= hours * 3600 + minutes * 60 + seconds


@pytest.mark.parametrize("seed", range(4))
def test_coredns_is_evicted_in_time_beside_pods_that_cannot_leave(seed):
    assert evicted_in_time(seed)


@pytest.mark.long
def test_coredns_is_evicted_in_time_in_each_of_two_hundred_worlds():
    assert [seed for seed in range(200) if not evicted_in_time(seed)] == []
