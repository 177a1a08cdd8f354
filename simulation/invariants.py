"""Invariants that must hold after every event; with `convergence`, also at the end of a run.

It reads a `WorldView` and changes nothing. A `Checker` remembers how far it has read, so that a check after every event
costs what has happened since. The rules for nodes and for messages are in `node_rules` and `message_rules`."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta

from local.cluster.history import Cause
from local.cluster.model import Cluster
from simulation.alarm_rules import Alarmed
from simulation.automatic_rules import AutomaticUpgrades
from simulation.block_rules import CapacityBlocks
from simulation.clock_changes import Closed
from simulation.convergence import EVENTUAL, instance_of, launch_of, launched_for, open_records
from simulation.deleted_cluster_rules import JUDGED, DeletedClusters
from simulation.disruption_rules import Spent
from simulation.drain_times import OUTLIVES, DrainTimes
from simulation.facts import News
from simulation.foreign_taints import ForeignTaints
from simulation.fruitless_launches import Fruitless
from simulation.hook_rules import HookRules
from simulation.hook_view import HookCall
from simulation.image_rules import ImageRules
from simulation.leaving_rules import LeavingRules
from simulation.liveness_rules import Liveness
from simulation.maintenance_budget_rules import MaintenanceBudgets
from simulation.managed_rules import ManagedRules
from simulation.message_rules import MessageRules, warned_by
from simulation.moves import Moves
from simulation.node_rules import NodeRules
from simulation.notification_rules import Notifications
from simulation.opt_out_rules import OptOuts
from simulation.pace_rules import Pace
from simulation.reboot_rules import RebootRules
from simulation.rule import Rule, Violation
from simulation.serving_rules import Serving
from simulation.surge_rules import MaxSurge
from simulation.taint_times import TaintTimes
from simulation.unasked_nodes import Unasked
from simulation.upgrade_rules import Members, Progress
from simulation.view import WorldView
from simulation.zone_convergence import zones_left
from simulation.zone_rules import ZoneRules

__all__ = ["Checker", "HookCall", "Rule", "Violation", "WorldView", "check"]

INTERFACE = 10  # addresses: the smallest instance takes as many before its first pod
FORGOTTEN = timedelta(days=7).total_seconds()  # a closed record; Auto Scaling forgets client tokens after 8 hours
SYNCED = 900.0  # seconds: facts are no older, unless AWS and the table fail three times in a row
HANDING_OVER = 300.0  # seconds: an execution whose record was opened again while it was ending sees that by itself
UNKNOWN = "are not known"  # of placement, where it had to choose without counting addresses


def check(view: WorldView, seed: int | None = None) -> list[Violation]:
    """Check the rules that always hold, over everything that has happened so far. In a run keep a `Checker`."""
    return Checker(seed).after_event(view)


class Checker:
    """Checker of one run. `checks` counts the calls of `after_event`."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self.checks = 0
        self._cluster: Cluster | None = None
        self._new = News().of
        self._times = DrainTimes()
        self._budgets = MaintenanceBudgets(self._times)
        self._nodes, self._messages = NodeRules(self._times, self._budgets), MessageRules()
        self._leaving, self._holding = LeavingRules(self._times), HookRules()
        self._launches_of: dict[
            str, tuple[str, float]
        ] = {}  # launch, of one period -> the instance it brought, and when
        self._launched_for: dict[str, str] = {}  # terminating instance -> its replacement
        self._paid: set[str] = set()
        self._overpaid: dict[str, int] = {}
        self._overlaps: dict[str, float] = {}
        self._unasked = Unasked(self._times.asked)
        self._pace, self._opt_outs = Pace(self._unasked), OptOuts(self._unasked)
        self._taints = TaintTimes(self._times, self._unasked)
        self._liveness, self._moves = Liveness(self._taints), Moves(self._unasked, self._taints)
        self._progress, self._members, self._spent, self._alarmed = Progress(), Members(), Spent(), Alarmed()
        self._blocks, self._automatic, self._reboots = CapacityBlocks(), AutomaticUpgrades(), RebootRules()
        self._foreign_taints, self._images, self._managed = ForeignTaints(), ImageRules(), ManagedRules()
        self._zones, self._serving = ZoneRules(), Serving()
        self._deleted, self._closed = DeletedClusters(self._times.asked), Closed()
        self._fruitless, self._surge, self._notified = Fruitless(), MaxSurge(), Notifications()
        self._always = self._rules()

    def after_event(self, view: WorldView) -> list[Violation]:
        """Return the violations of the events since the last call."""
        self.checks += 1
        if self._cluster is None:
            self._cluster = view.cluster
            self._nodes.begin(view)
            self._pace.begin(view)
            view.cluster.observe(self._nodes.watch)
            view.cluster.observe(self._unasked.watch)
            view.cluster.observe(self._moves.watch)
            view.cluster.observe(self._spent.watch)
            view.cluster.observe(self._foreign_taints.watch)
            view.cluster.observe(self._images.watch)
            view.cluster.observe(self._fruitless.watch)
        self._times.read(view)
        self._members.watch(view)
        self._progress.watch(view)
        self._images.read(view)
        for instance in warned_by(self._new("warnings known", view.acknowledged), view.account):
            self._times.warned(instance, view.now)
        found = [
            Violation(seed=self.seed, at=view.now, rule=rule, text=text)
            for rule, rule_check in self._always
            for text in rule_check(view)
        ]
        return found if view.cluster_deleted is None else [one for one in found if one.rule in JUDGED]

    def at_the_end(self, view: WorldView) -> list[Violation]:
        """Return the work that is still open; only once faults and arrivals have stopped and `STUCK_AFTER`
        has passed.
        """
        found = self.after_event(view)
        of_upgrades = ((Rule.UPGRADE, self._progress.at_the_end), (Rule.TARGET, self._members.at_the_end))
        for rule, rule_check in (
            *of_upgrades,
            (Rule.RECORD, self._open_records),
            (Rule.STARTED_AGAIN, self._liveness.at_the_end),
            (Rule.MOVES, self._moves.at_the_end),
            (Rule.ZONES_OPEN, zones_left),
            (Rule.CLUSTER_GONE, self._deleted.at_the_end),
            *EVENTUAL,
        ):
            found += [Violation(seed=self.seed, at=view.now, rule=rule, text=text) for text in rule_check(view)]
        return found if view.cluster_deleted is None else [one for one in found if one.rule in JUDGED]

    def figures(self, view: WorldView) -> Mapping[str, float]:
        """Return the figures of the disturbance so far."""
        return self._moves.figures(view)

    def _open_records(self, view: WorldView) -> Iterator[str]:
        return open_records(view, self._times.asked)

    def _rules(self) -> tuple[tuple[Rule, Callable[[WorldView], Iterator[str]]], ...]:
        return (
            (Rule.EVICTION, self._evictions),
            (Rule.DELETION, self._deletions),
            (Rule.FOREIGN_HOOK, self._foreign_hooks),
            (Rule.ANSWER, self._holding.answers),
            (Rule.LAUNCH, self._launches),
            (Rule.DECREMENT, self._decrements),
            (Rule.EXECUTION, self._executions),
            (Rule.REMOVAL, self._removals),
            (Rule.CORDON, self._nodes.cordons),
            (Rule.FOREIGN_CORDON, self._nodes.foreign_cordons),
            (Rule.FOREIGN_TAINT, self._foreign_taints.check),
            (Rule.UNAVAILABLE, self._budgets.check),
            (Rule.DRAINED, self._nodes.released),
            (Rule.NOTICE, self._nodes.too_early),
            (Rule.UNTAINTED, self._nodes.untainted),
            (Rule.HEARTBEAT, self._holding.misdirected),
            (Rule.LAUNCH_HOOK, self._holding.launches),
            (Rule.CLAIM, self._nodes.claims),
            (Rule.DEADLINE, self._nodes.deadlines),
            (Rule.IN_SERVICE, self._leaving.targets),
            (Rule.VOLUMES, self._leaving.volumes),
            (Rule.SETTLED, self._leaving.settled),
            (Rule.CAUSE, self._messages.causes),
            (Rule.MALFORMED, self._messages.malformed),
            (Rule.PLACEMENT, self._placements),
            (Rule.SERVES, self._serving.check),
            (Rule.PACE, self._pace.check),
            (Rule.MAX_SURGE, self._surge.check),
            (Rule.OPT_OUT, self._opt_outs.check),
            (Rule.IDLE, self._taints.check),
            (Rule.LIVENESS, self._liveness.ends),
            (Rule.LEFTOVER, self._liveness.leftovers),
            (Rule.MOVES, self._moves.check),
            (Rule.SPENT, self._spent.check),
            (Rule.ALARM, self._alarmed.check),
            (Rule.CLOSED, self._closed.check),
            (Rule.BLOCK, self._blocks.check),
            (Rule.AUTOMATIC, self._automatic.check),
            (Rule.REBOOTS, self._reboots.often),
            (Rule.REBOOT_DRAINED, self._reboots.undrained),
            (Rule.REBOOT_BREAKER, self._reboots.in_an_outage),
            (Rule.DRIFT, self._images.drifts),
            (Rule.DRIFT_SEEN, self._images.unseen),
            (Rule.PARAMETER, self._images.upgraded),
            (Rule.CLUSTER_GONE, self._deleted.check),
            (Rule.MANAGED, self._managed.written),
            (Rule.MANAGED_ASKED, self._managed.asked),
            (Rule.MANAGED_DONE, self._managed.ended),
            (Rule.SHIFT_KNOWN, self._zones.learned),
            (Rule.SHIFT_LAUNCH, self._zones.launches),
            (Rule.SHIFT_BALANCE, self._zones.balances),
            (Rule.SHIFT_REMOVAL, self._zones.removals),
            (Rule.FRUITLESS, self._fruitless.check),
            (Rule.NOTIFIED, self._notified.check),
        )

    def _evictions(self, view: WorldView) -> Iterator[str]:
        for violation in self._new("violations", view.cluster.history.violations()):
            if violation.cause is Cause.EVICTION:
                yield f"{violation.pod} evicted, {violation.pdb} has {violation.healthy} of {violation.desired}"

    def _deletions(self, view: WorldView) -> Iterator[str]:
        for deletion in self._new("deletions", view.deletions):
            if not self._times.may_delete(deletion.instance, deletion.own, view):
                yield f"{deletion.pod} on {deletion.instance}, with {deletion.given:.0f} s of its {deletion.own:.0f}"

    def _foreign_hooks(self, view: WorldView) -> Iterator[str]:
        for name, calls in (("completed", view.completed_hooks), ("heartbeaten", view.heartbeats)):
            for group, hook, instance, by_us in self._new(name, calls):
                if by_us and not view.ours(hook, group):
                    yield f"{hook} of {group} {name} for {instance}"

    def _launches(self, view: WorldView) -> Iterator[str]:
        for token, instance in self._new("launches", view.launches):
            terminating = launched_for(token)
            first, at = self._launches_of.setdefault(launch_of(token), (instance, view.now))
            self._launched_for[terminating] = instance
            if first == instance or self._outlived(terminating, view):
                continue
            if view.open_since.get(terminating, 0.0) - at > FORGOTTEN:
                self._launches_of[launch_of(token)] = (instance, view.now)
                continue
            yield f"{first} and {instance} were launched for {terminating}, the second by token {token}"

    def _placements(self, view: WorldView) -> Iterator[str]:
        for instance, plan in self._new("plans", view.plans):
            if not plan.options or UNKNOWN in plan.options[0].why:
                continue  # nowhere, or the facts could not be read at that moment, and the choice says so
            zone = plan.options[0].zone  # later options are checked when their turn comes
            crowd = view.crowded.get(zone)
            if crowd is not None and crowd.left < INTERFACE and crowd.since + SYNCED <= view.now < crowd.until:
                yield f"{instance} is to be replaced in {zone}, where {crowd.left} addresses are left"

    @staticmethod
    def _outlived(terminating: str, view: WorldView) -> bool:
        """Return whether an execution about the instance has just ended, so that its last step may still run beside the
        next one and find other capacity: a step is not stopped with its execution. The group's book judges whether
        both launches are offset.
        """
        stopped = view.rested_since(terminating)
        return stopped is not None and view.now - stopped < OUTLIVES

    def _decrements(self, view: WorldView) -> Iterator[str]:
        for instance in self._new("decrements", view.decrements):
            if instance in self._paid:
                yield f"{instance} was offset twice"
            self._paid.add(instance)
        for name, book in view.books.items():
            if book.overpaid > self._overpaid.get(name, 0):
                self._overpaid[name] = book.overpaid
                yield f"{name} was made smaller than its owners meant: nothing was owed"

    def _executions(self, view: WorldView) -> Iterator[str]:
        names = view.open_executions
        if len({name.rpartition("-")[0] for name in names}) == len(names):  # as nearly always: each of another instance
            self._overlaps.clear()
            return
        instances: set[str] = set()
        twice: set[str] = set()
        for instance in filter(None, map(instance_of, view.open_executions)):
            (twice if instance in instances else instances).add(instance)
        self._overlaps = {instance: self._overlaps.get(instance, view.now) for instance in sorted(twice)}
        for instance, since in self._overlaps.items():
            if view.now - since > HANDING_OVER:
                self._overlaps[instance] = float("inf")  # reported once
                yield f"{instance} has several for {view.now - since:.0f} s"

    def _removals(self, view: WorldView) -> Iterator[str]:
        for removal in self._new("removals", view.removals):
            if view.running(removal.instance) and view.joined(removal.instance):  # one that starts again joins again
                yield f"{removal.node} ({removal.instance})"
