"""One small cluster whose disruption runs run in the simulation, and what tests ask of it afterwards."""

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from leeward.policy.document import Budget, ClusterPolicies, DisruptionPolicy
from simulation.definitions import DISRUPTION_RUN
from simulation.fault_rates import Faults
from simulation.world import World
from tests.simulation.fleet_stand_in import Fleet, GroupPlan, budget, deployment, policies

GROUP, OTHERS = "app", "other"
FIRST = "i-00000000000000001"
CHANGED = 240.0  # seconds: the template is changed just before the first decision
DECIDED = 300.0  # seconds: the first decision
QUIET = 900.0  # seconds after the last hour
FULL = (deployment("web", 18), budget("web", 2))  # of three nodes of two vCPUs none can be spared
ONE_BY_ONE = (Budget(nodes=1, percent=False),)


def disrupting(**rules) -> ClusterPolicies:
    written = policies()
    given = {"consolidation_policy": "Never", "budgets": ONE_BY_ONE, "cooldown": timedelta(minutes=5), **rules}
    return replace(
        written, policies=tuple(replace(one, disruption=DisruptionPolicy(**given)) for one in written.policies)
    )


def a_fleet(size=3, *, maximum=6, spot=False, workloads=FULL, groups=None, **rules):
    return Fleet(
        groups=groups or (GroupPlan(name=GROUP, spot=spot, size=size, maximum=maximum),),
        workloads=workloads,
        policies=disrupting(**rules),
    )


def a_wasteful_fleet(**rules):
    """One expensive node of which half a cheap one would do."""
    groups = (
        GroupPlan(name="big", spot=False, size=1, instance_type="m5.xlarge", zones=("us-east-1a",)),
        GroupPlan(name="small", spot=False, size=0, zones=("us-east-1a",)),
    )
    return a_fleet(groups=groups, workloads=(deployment("web", 4),), **{"consolidation_policy": WASTE, **rules})


WASTE = "WhenEmptyOrUnderutilized"


@dataclass
class Disrupted:
    """A world with fn disruption-planner on its schedule. `states`: those that each execution of disruption has
    entered, by name; `most`: the most nodes that carried our taint at one time.
    """

    world: World

    def __init__(self, fleet=None, faults=None, seed=1):
        self.world = World(seed, fleet or a_fleet(), faults or Faults.none(), (), disruption=True)
        self.machine = self.world.system.machines[DISRUPTION_RUN]
        self.states: dict[str, list[str]] = {}
        self.most = 0
        self.world.seen = self._look

    def at(self, seconds, act):
        self.world.timeline.after(seconds, act, "test")
        return self

    def drifting(self, group=GROUP):
        """The group launches from a second version from now on: every node of it has drifted."""

        def change():
            there = self.world.fleet.groups[group]
            there.template.add("ami-00000000000000002")
            there.point_at("2")

        return self.at(CHANGED, change)

    def run(self, hours=1.0, rest=QUIET):
        self.outcome = self.world.run(hours, rest)
        assert (self.outcome.violations, self.outcome.unexpected) == ((), ())
        return self

    @property
    def record(self):
        return self.world.system.disruptions.records["blue"]

    @property
    def ends(self):
        """The last states of all executions, in the order of their end."""
        found = (re.search(r"execution blue-\d+-\d+: [A-Z]+ (\w+)", line) for line in self.world.story)
        return [one[1] for one in found if one]

    @property
    def story(self):
        return "\n".join(self.world.story)

    @property
    def versions(self):
        group = self.world.groups[GROUP]
        return sorted(member.template.version for member in group.instances if member.template)

    @property
    def launches(self):
        return len(self.world.launches)

    def sizes(self):
        return {name: (group.desired, len(group.instances)) for name, group in self.world.groups.items()}

    def untouched(self):
        """Nothing tainted or cordoned, zones balanced by the groups, sizes as their owners chose them."""
        nodes = list(self.world.cluster.store.each("nodes"))
        tainted = [n["metadata"]["name"] for n in nodes if n["spec"].get("taints") or n["spec"].get("unschedulable")]
        suspended = [name for name, group in self.world.groups.items() if group.suspended]
        maxima = {name: group.maximum for name, group in self.world.groups.items()}
        return (tainted, suspended, maxima) == ([], [], dict(self.world.maxima)) and not self.machine.executions

    def _look(self):
        tainted = sum(bool(node["spec"].get("taints")) for node in self.world.cluster.store.each("nodes"))
        self.most = max(self.most, tainted)
        for name, execution in self.machine.executions.items():
            seen = self.states.setdefault(name, [])
            if not seen or seen[-1] != execution.state:
                seen.append(execution.state)


__all__ = ["CHANGED", "DECIDED", "FIRST", "GROUP", "Disrupted", "a_fleet", "a_wasteful_fleet", "deployment"]
