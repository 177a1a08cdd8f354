"""One small group that is upgraded in the simulation, and what tests ask of it afterwards."""

from dataclasses import dataclass, replace
from datetime import timedelta

from leeward.policy.document import Canary, ClusterPolicies, UpdatePolicy
from simulation.definitions import NODE_GROUP_UPGRADE, UPGRADES
from simulation.fault_rates import Faults
from simulation.machine import Execution
from simulation.world import World
from tests.simulation.fleet_stand_in import Fleet, GroupPlan, budget, deployment, policies

GROUP, OTHERS = "app", "other"
FIRST, BEGIN = "i-00000000000000001", 300.0
QUIET = 900.0  # seconds after the last hour


def updating(**update) -> ClusterPolicies:
    written = policies()
    given = {"canary": Canary(), **update}
    return replace(
        written, policies=tuple(replace(one, update=replace(UpdatePolicy(), **given)) for one in written.policies)
    )


def a_fleet(size=6, *, maximum=6, spot=False, workloads=None, **update):
    return Fleet(
        groups=(
            GroupPlan(name=GROUP, spot=spot, size=size, maximum=maximum),
            GroupPlan(name=OTHERS, spot=False, size=3),
        ),
        workloads=workloads or (deployment("web", 8), budget("web"), deployment("api", 6), budget("api", 2)),
        policies=updating(**update),
    )


@dataclass
class Upgraded:
    """A world in which group `app` has a second launch template version. `machine`: the state machine of its upgrades;
    `executions` of it by name, those that have ended too, `others` those of the other machine of upgrades.
    """

    world: World

    def __init__(self, fleet=None, faults=None, seed=1, machine=NODE_GROUP_UPGRADE):
        self.world = World(seed, fleet or a_fleet(), faults or Faults.none(), ())
        self.template = self.world.fleet.groups[GROUP].template
        self.template.add("ami-00000000000000002")
        self.machine = self.world.system.machines[machine]
        self.other_machine = self.world.system.machines[next(name for name in UPGRADES if name != machine)]
        self.executions: dict[str, Execution] = {}
        self.others: dict[str, Execution] = {}
        self.watch(lambda: None)
        self.world.seen = self._look
        self.started = 0

    def at(self, seconds, act):
        self.world.timeline.after(seconds, act, "test")
        return self

    def watch(self, look):
        """Look after each event."""
        self.looks = look
        return self

    def start(self, name="first", at=BEGIN, *, elsewhere=False, **asked):
        """`elsewhere`: in the state machine for groups of the other kind."""
        document = {"group": GROUP, **asked}

        def begin():
            if asked.get("force"):
                self.world.forced_upgrades.append((GROUP, self.world.timeline.now()))
            (self.other_machine if elsewhere else self.machine).start(name, document)

        return self.at(at, begin)

    def run(self, hours=1.0, rest=QUIET):
        self.outcome = self.world.run(hours, rest)
        assert (self.outcome.violations, self.outcome.unexpected) == ((), ())
        return self

    def ended(self, name="first"):
        """The state in which the execution ended."""
        said = [line for line in self.world.story if f"execution {name}: " in line]
        return said[-1].split(f"execution {name}: ")[1].split()[1] if said else ""

    def why(self, name="first"):
        return next(line for line in self.world.story if f"execution {name}: " in line)

    @property
    def everywhere(self):
        """Executions of both state machines."""
        return {**self.others, **self.executions}

    @property
    def group(self):
        return self.world.groups[GROUP]

    @property
    def record(self):
        return self.world.upgrades[GROUP]

    @property
    def versions(self):
        return sorted({member.template.version for member in self.group.instances if member.template})

    @property
    def zones(self):
        return sorted(member.zone for member in self.group.instances)

    @property
    def cordoned(self):
        return [n["metadata"]["name"] for n in self.world.cluster.store.each("nodes") if n["spec"].get("unschedulable")]

    def at_rest(self, size=6, versions=("2",)):
        """Sizes restored, every member on one version, nothing cordoned, zones balanced by the group again."""
        return (self.group.desired, self.group.maximum, tuple(self.versions), self.cordoned, self.group.suspended) == (
            size,
            self.world.maxima[GROUP],
            tuple(versions),
            [],
            (),
        )

    @property
    def states(self):
        """Those that each execution has entered, by name, in their order."""
        return {name: entered(execution) for name, execution in self.executions.items()}

    def _look(self):
        for name, execution in self.machine.executions.items():
            self.executions.setdefault(name, execution)
        for name, execution in self.other_machine.executions.items():
            self.others.setdefault(name, execution)
        self.looks()


def entered(execution):
    return [event.name for event in execution.history if event.type.endswith("StateEntered")]


__all__ = ["BEGIN", "FIRST", "GROUP", "OTHERS", "Upgraded", "a_fleet", "timedelta", "updating"]
