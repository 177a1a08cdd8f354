"""Plan of a second cluster, which the same deployment serves: smaller than the first, with groups, policies, workloads
and an autoscaler of its own.

Its groups bear the names that the policies of both clusters select: only their tags say to which cluster they
belong."""

from dataclasses import replace
from random import Random

from simulation.fleets import Fleet, generate

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
