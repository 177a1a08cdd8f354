"""Worlds in which nodes fall ill, and what came of it."""

from datetime import timedelta

from leeward.policy.document import ClusterPolicies, ClusterSettings, DrainPolicy, GroupSelector, NodePolicy
from leeward.policy.repair import RepairPolicy
from simulation.fault_rates import Faults
from simulation.world import World
from tests.fakes.builders import pausing
from tests.simulation.fleet_stand_in import SMALL, Fleet, GroupPlan

GROUP = "web"
MINUTE = 60.0
NINE = GroupPlan(name=GROUP, size=9, maximum=12, spot=False)
REPAIR = RepairPolicy(not_ready_after=timedelta(minutes=5))
BEGIN = 180.0 + MINUTE  # after the world has warmed up


def written(*, repair=REPAIR, finalizer=False, settings=None, groups=()):
    drain = DrainPolicy(settle=timedelta(seconds=10), timeout=timedelta(minutes=10))
    policy = NodePolicy(
        name="all", selector=GroupSelector(groups=groups), drain=drain, repair=repair, finalizer=finalizer
    )
    return ClusterPolicies(settings=settings or ClusterSettings(name="blue"), policies=(policy,))


class Clinic:
    """A world whose nodes fall ill at moments that a test chooses; `run` ends it and keeps the outcome."""

    def __init__(self, policies=None, *, groups=(NINE,), workloads=SMALL.workloads, faults=None, seed=1):
        fleet = Fleet(groups=groups, workloads=workloads, policies=policies or written())
        self.world = World(seed, fleet, faults or Faults.none(), ())
        self.outcome = None
        self._began = self.world.timeline.now()

    def at(self, seconds, what):
        """Seconds since the world began."""
        self.world.timeline.after(seconds, what, "a test")
        return self

    def silence(self, *numbers, at=BEGIN):
        """The kubelets of the group's n-th instances stop reporting."""
        return self.at(at, lambda: [self._say_ready(number, "Unknown") for number in numbers])

    def recover(self, *numbers, at):
        """They report again."""
        return self.at(at, lambda: [self._say_ready(number, "True") for number in numbers])

    def impair(self, number, *, at=BEGIN):
        """Its system status check fails."""

        def fail():
            self.instance(number).impaired = self.world.timeline.now()

        return self.at(at, fail)

    def delete_node(self, number, *, at=BEGIN):
        """As `kubectl delete node` does."""
        return self.at(at, lambda: self.world.cluster.delete("nodes", self.instance(number).node))

    def rewrite(self, policies, *, at=BEGIN):
        """Other policies are deployed."""

        def write():
            self.world.policies = self.world.system.clusters.written[self.world.cluster_name] = policies

        return self.at(at, write)

    def outage(self, *, at=BEGIN, minutes):
        """The Kubernetes API does not answer."""

        def begin():
            self.world.injector.api_down_until = self.world.timeline.now() + minutes * MINUTE

        return self.at(at, begin)

    def run(self, hours=1.0, converge=3600.0, *, quiet=True):
        self.outcome = self.world.run(hours, converge=converge)
        assert self.outcome.violations == ()
        if quiet:
            assert self.outcome.unexpected == ()
        return self

    def instance(self, number):
        name = f"i-{number + 1:017x}"
        return self.world.fleet.instances[name]

    def ended(self):
        """Numbers of the instances that are gone."""
        known = self.world.fleet.instances
        return {n for n in range(9) if (name := f"i-{n + 1:017x}") not in known or known[name].gone}

    def since_the_beginning(self, number, time):
        """Seconds until something was noted in its record."""
        record = self.world.claims.records[f"i-{number + 1:017x}"]
        return record.times[time].timestamp() - self._began

    def causes(self, number):
        """Why it went, by the words of its record."""
        record = self.world.claims.records.get(f"i-{number + 1:017x}")
        return [] if record is None else [cause.kind.value for cause in record.causes]

    @property
    def sizes(self):
        """(desired, instances in service, nodes Ready)."""
        group = self.world.fleet.groups[GROUP]
        nodes = self.world.cluster.list("nodes")
        ready = [
            n for n in nodes if any(c["type"] == "Ready" and c["status"] == "True" for c in n["status"]["conditions"])
        ]
        return group.desired, sum(m.lifecycle == "InService" for m in group.members.values()), len(ready)

    def _say_ready(self, number, status):
        if self.world.cluster.store.find("nodes", self.instance(number).node) is not None:
            self.world.cluster.set_node_ready(self.instance(number).node, status)


def paused(policies):
    """The same with the cluster paused, interruption handling as well."""
    return pausing(policies, "all")
