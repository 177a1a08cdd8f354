"""Plan of a second cluster, which the same deployment serves: smaller than the first, with groups, policies, workloads
and an autoscaler of its own.

Its groups bear the names that the policies of both clusters select: only their tags say to which cluster they
belong."""

import json
from dataclasses import replace
from random import Random

from simulation.accounts import MEMBER_REGION
from simulation.fleets import REGION, Fleet, generate

CLUSTER = "green"
NODES = (3, 10)
BUSIER = 1.5  # times as many arrivals in a world with two clusters


def second_fleet(random: Random) -> Fleet:
    """Generate its fleet, with a group for each of the policies. In half of the clusters only one of them is there, so
    that a group is not selected whose name is selected in the first cluster.
    """
    fleet = generate(random, nodes=random.randint(*NODES))
    policies, chosen = fleet.policies.policies, random.randrange(2 * len(fleet.policies.policies))
    kept = policies if chosen >= len(policies) else policies[chosen : chosen + 1]
    selected = tuple(one.name for one in kept)
    batch = "batch" in {group.name for group in fleet.groups}
    names = {group.name: "batch" if group.name == "app" and not batch else group.name for group in fleet.groups}
    groups = (
        replace(group, name=f"{names[group.name]}-{CLUSTER}", selected=names[group.name].startswith(selected))
        for group in fleet.groups
    )
    settings = replace(fleet.policies.settings, name=CLUSTER)
    written = replace(fleet.policies, settings=settings, policies=tuple(kept))
    return replace(fleet, cluster=CLUSTER, groups=tuple(groups), policies=written)


def elsewhere(fleet: Fleet) -> Fleet:
    """Return the fleet in the Region of the member account: its zones, and those that its workloads name."""
    groups = (replace(group, zones=tuple(map(_there, group.zones))) for group in fleet.groups)
    workloads = tuple(json.loads(_there(json.dumps(workload))) for workload in fleet.workloads)
    return replace(fleet, zones=tuple(map(_there, fleet.zones)), groups=tuple(groups), workloads=workloads)


def _there(text: str) -> str:
    return text.replace(REGION, MEMBER_REGION)
