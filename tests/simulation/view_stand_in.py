"""An idle world made manually, as the invariants look at it: a test changes one thing."""

from dataclasses import dataclass, field
from math import inf

from leeward.model import well_known
from leeward.model.group import HookResult
from leeward.model.node import Taint
from leeward.model.termination import Cause, CauseKind, Outcome, Status, TerminationRecord
from leeward.model.zonal_shift import ZoneRecord
from leeward.policy.document import ClusterPolicies
from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from local.cluster.settings import ClusterSettings
from simulation.asked import Asked
from simulation.aws.events import ACCOUNT, REGION
from simulation.hook_view import Hold
from simulation.kubernetes import SimKubernetes
from tests.fakes.builders import GROUP, a_group, a_subject, policies
from tests.fakes.clock import START, FakeClock

NODE, INSTANCE = "node-a", "i-a"
TAINT = Taint(key=well_known.DISRUPTED_TAINT, effect="NoSchedule", value="manual")
OURS = {"leeward-terminate"}


@dataclass
class World:
    """At rest: one node of one group. A test changes one thing."""

    clock: FakeClock = field(default_factory=FakeClock)
    policies: ClusterPolicies = field(default_factory=policies)
    groups: dict = field(default_factory=lambda: {GROUP: a_group(GROUP, INSTANCE)})
    records: dict = field(default_factory=dict)
    waiting: set = field(default_factory=set)
    completed_hooks: list = field(default_factory=list)
    heartbeats: list = field(default_factory=list)
    timed_out: list = field(default_factory=list)
    open_executions: set = field(default_factory=set)
    begun: dict = field(default_factory=dict)
    account: tuple = (ACCOUNT, REGION)
    acknowledged: list = field(default_factory=list)
    dead_letters: list = field(default_factory=list)
    warned: list = field(default_factory=list)
    reused: set = field(default_factory=set)
    back_in_service: dict = field(default_factory=dict)
    tainted_by_others: set = field(default_factory=set)
    terminations: list = field(default_factory=list)
    reboots: list = field(default_factory=list)
    started_manually: set = field(default_factory=set)
    strays: list = field(default_factory=list)
    books: dict = field(default_factory=dict)
    faultless: bool = True
    queue_depth: int = 0
    in_flight: int = 0
    launches: list = field(default_factory=list)
    plans: list = field(default_factory=list)
    crowded: dict = field(default_factory=dict)
    decrements: list = field(default_factory=list)
    ended: set = field(default_factory=set)
    ended_times: dict = field(default_factory=dict)
    upgrades: dict = field(default_factory=dict)
    upgrading: set = field(default_factory=set)
    disruptions: dict = field(default_factory=dict)
    ringing: dict = field(default_factory=dict)
    disrupting: set = field(default_factory=set)
    shifted: list = field(default_factory=list)
    known_shifts: set = field(default_factory=set)
    zone_record: ZoneRecord = field(default_factory=lambda: ZoneRecord(cluster="blue"))
    switched: list = field(default_factory=list)
    maxima: dict = field(default_factory=lambda: {GROUP: a_group(GROUP).maximum})
    replicas: dict = field(default_factory=dict)
    balanced: dict = field(default_factory=dict)
    asked: list = field(default_factory=list)
    rewritten: float = 0.0
    asked_by_us: set = field(default_factory=set)
    misdirected: list = field(default_factory=list)
    held: list = field(default_factory=list)
    states: dict = field(default_factory=dict)
    rested: dict = field(default_factory=dict)
    unjoined: set = field(default_factory=set)
    launched_at: dict = field(default_factory=dict)
    launch_hooks: set = field(default_factory=set)
    held_long: set = field(default_factory=set)
    events_came: dict = field(default_factory=dict)
    time_outs: dict = field(default_factory=dict)
    refusals: list = field(default_factory=list)
    unnamed: float = 0.0  # seconds of its last time-out in which no policy named a hook
    forced_ones: set = field(default_factory=set)
    images: dict = field(default_factory=dict)
    launched_images: dict = field(default_factory=dict)
    deleted_versions: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)
    readable: bool = True
    decided: list = field(default_factory=list)
    ordered: list = field(default_factory=list)
    written: list = field(default_factory=list)
    updates: dict = field(default_factory=dict)
    own_images: dict = field(default_factory=dict)
    only_kubernetes_fails: bool = False
    api_in_trouble: bool = False
    over: bool = False
    cluster_deleted: float | None = None
    endings: list = field(default_factory=list)
    notified: list = field(default_factory=list)
    free: int = 4000  # addresses
    away: bool = False  # table, queue or concurrency
    rolled: set = field(default_factory=set)
    short_zones: dict = field(default_factory=dict)
    bad: set = field(default_factory=set)

    def __post_init__(self):
        self.cluster = Cluster(clock=lambda: self.now, settings=ClusterSettings(pod_start=0.0))
        self.api = SimKubernetes(self.cluster, self.clock)
        self.cluster.add_node(NodeSpec(name=NODE, instance_id=INSTANCE))
        self.deletions, self.removals = self.api.deletions, self.api.removals
        self.evictions = self.api.evictions

    @property
    def now(self):
        return self.clock.now().timestamp()

    @property
    def open_since(self):
        found = [record for record in self.records.values() if record.status is Status.OPEN]
        return {record.instance: record.times["claimed"].timestamp() for record in found}

    def known_causes(self, instance):
        return [cause.id for cause in self.records[instance].causes] if instance in self.records else []

    def forced(self, instance):
        return instance in self.forced_ones

    def rolls(self, group):
        return group in self.rolled

    def is_bad(self, group):
        return group in self.bad

    def holds(self, instance):
        return [hold for held, hold in self.held if held == instance]

    def serves(self, instance):
        return instance not in self.ended

    def working_since(self, instance):
        names = [name for name in self.open_executions if name.startswith(f"{instance}-")]
        return min((self.started(name) for name in names), default=None)

    def states_of(self, instance):
        return self.states.get(instance, [])

    def rested_since(self, instance):
        return self.rested.get(instance)

    def free_addresses(self, zone):
        return self.free

    def stood_still(self, within):
        return self.away

    def troubled(self, within):
        return self.api_in_trouble

    def joined(self, instance):
        return instance not in self.unjoined

    def launched(self, instance):
        return self.launched_at.get(instance)

    def event_came(self, group, hook, instance):
        return self.events_came.get(instance, inf)

    def refused_anywhere(self, since):
        return any(end >= since for _, end in self.refusals)

    def refused_since(self, at):
        return max((min(end, self.now) - max(begin, at) for begin, end in self.refusals), default=0)

    def unnamed_since(self, at, group, hook):
        return self.unnamed

    def time_out(self, group, hook):
        return self.time_outs.get(hook, 1728)

    def launched_by(self, instance):
        return GROUP

    def held_to_the_end(self, group, hook, instance):
        return (group, hook, instance) in self.held_long

    def ours(self, hook, group):
        return hook in OURS

    def ends(self, hook, group):
        return self.ours(hook, group) and hook not in self.launch_hooks

    def image(self, instance):
        return self.images.get(instance, "")

    def images_of(self, nodegroup):
        return self.own_images.get(nodegroup, ())

    def running(self, instance):
        return instance not in self.ended

    def ended_at(self, instance):
        return self.ended_times.get(instance)

    def target(self, instance, at):
        return self.balanced.get(instance)

    def started(self, execution):
        return self.begun.get(execution, START.timestamp())

    def work(self, *, seconds_ago=0):
        """An execution is open about the instance."""
        self.open_executions.add(f"{INSTANCE}-1")
        self.begun[f"{INSTANCE}-1"] = self.now - seconds_ago

    def ask(self, kind, *, at=None, takes=None, deletes=False, key="event-1"):
        at = self.now if at is None else at
        self.asked.append(Asked(at=at, instance=INSTANCE, kind=kind, key=key, takes=takes, deletes=deletes))

    def hold(self, hook="leeward-terminate", *, seconds_ago=0, timeout=300, default=HookResult.CONTINUE, **more):
        """A lifecycle action holds the instance."""
        since = self.now - seconds_ago
        defaults = {"ours": hook in OURS, "launching": False, "ends": since + timeout}
        action = Hold(hook=hook, since=since, timeout=timeout, default=default, **{**defaults, **more})
        self.held.append((INSTANCE, action))

    def taint(self):
        return self.api.taint(self.api.node(NODE), TAINT)

    def pods(self, *names, **limit):
        for name in names:
            spec = {"nodeName": NODE, "containers": [{"name": "main", "image": "i"}]}
            self.cluster.create("pods", {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec})
        if limit:
            spec = {"selector": {"matchLabels": {"app": "web"}}, **limit}
            self.cluster.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": spec})
        self.cluster.step(self.now)
        return self.api.pods_on(NODE)


def a_record(*, at=START, kind=CauseKind.SPOT_INTERRUPTION, deadline=None, **more):
    cause = Cause(id="event-1", kind=kind, at=at, deadline=deadline)
    defaults = {"status": Status.OPEN, "attempt": 1, "version": 1, "causes": (cause,), "times": {"claimed": at}}
    return TerminationRecord(subject=a_subject(INSTANCE, node=NODE), **{**defaults, **more})


def closed(outcome=Outcome.TERMINATED):
    return a_record(status=Status.CLOSED, outcome=outcome)


def rules(violations):
    return [violation.rule for violation in violations]
