"""Rules that must hold for nodes and their pods: cordons, taints, drains before an instance is released.

The rules read the raw objects of the cluster and share no code with the product's drains. They watch nodes, whose
taints come and go between two events."""

from collections.abc import Iterator

from leeward.model import well_known
from local.cluster.objects import Obj, annotations_of, name_of
from local.cluster.store import Change, ChangeType
from simulation.asked import Kind
from simulation.convergence import is_tainted
from simulation.drain_times import OUTLIVES, DrainTimes
from simulation.drained import evictable, left_behind, untouched
from simulation.facts import News, group_of, policy_of
from simulation.foreign_taints import tainted_by_others
from simulation.maintenance_budget_rules import MaintenanceBudgets
from simulation.node_instances import instance_behind
from simulation.timed_calls import LONGEST_CALL
from simulation.view import WorldView

GIVES_BACK = "ReturnNodeToService"  # the state of node-termination that puts a node into service again
CLAIMED_WITHIN = 30.0  # seconds: the queue's window, a cold start and the calls to AWS
NOTICE = 120.0  # seconds from a spot warning to the end
IN_GOOD_TIME = 40.0  # a hook that began to hold the instance later than so long before the end may still wait
RELEASED = 10.0  # seconds before the end in which Leeward releases an instance, drained or not
FREE_FOR = 60.0  # seconds: a grace of 30 s, the pauses of a drain that is blocked, and the answer before the end
UNTAINTED = 20.0  # seconds that the node of a warned instance may be without our taint
TAINTED_AGAIN = 120.0  # seconds in which a drain repeats its taint, once the API server answers again
WRITE_TAKES = 5.0  # seconds from the read of the record to the write of the node: two slow calls, and their work


class NodeRules:
    """Rules for nodes, one object for each run."""

    def __init__(self, times: DrainTimes, budgets: MaintenanceBudgets) -> None:
        self._times, self._budgets = times, budgets
        self._news = News()
        self._bared: list[str] = []  # instances whose node has just lost our taint
        self._cordoned: set[str] = set()  # nodes whose cordon came with our taint
        self._theirs: set[str] = set()  # nodes that were cordoned before our taint came
        self._unknown: set[str] = set()  # nodes whose cordon was lifted under our taint: a later one may be either's
        self._left: list[tuple[str, str]] = []  # (node, instance)
        self._lifted: list[tuple[str, str]] = []  # (node, instance)
        self._warned: dict[str, float] = {}  # instance -> when EC2 takes it; those that still run
        self._is_tainted: dict[str, bool] = {}  # by instance, of nodes that are there
        self._outrun: dict[str, float] = {}  # instance whose taint a write older than its claim removed -> when
        self._unclaimed: dict[str, float] = {}  # warned instance -> when
        self._bare: dict[str, float] = {}  # warned instance -> since when its node has no taint
        self._held: dict[str, float] = {}  # warned instance -> since when a hook of ours holds it
        self._free: dict[str, dict[str, float]] = {}  # warned instance -> pod -> since when it could be evicted

    def begin(self, view: WorldView) -> None:
        """Record the nodes that exist before the first event."""
        for node in view.cluster.store.each("nodes"):
            self._is_tainted[instance_behind(node)] = is_tainted(node)

    def watch(self, change: Change) -> None:
        """Observe a write; runs inside it, so it only reads."""
        if change.resource != "nodes":
            return
        name, new = name_of(change.obj), change.obj
        if change.type is ChangeType.DELETED:
            self._cordoned.discard(name)
            self._theirs.discard(name)
            self._unknown.discard(name)
            self._budgets.forget(instance_behind(new))
            self._is_tainted.pop(instance_behind(new), None)
            return
        self._budgets.note_availability(new)
        if change.old is None and instance_behind(new) in self._warned:
            return  # it registers again: the drain has been there before
        self._is_tainted[instance_behind(new)] = is_tainted(new)
        if change.old is not None:
            self._compare(name, change.old, new)

    def cordons(self, view: WorldView) -> Iterator[str]:
        """Yield nodes that keep our cordon after our taint was removed, and are not drained alone."""
        left, self._left = self._left, []
        left = [(node, instance) for node, instance in left if not self._lifted_by_operators(instance, view, 0.0)]
        yield from (node for node, instance in left if not self._times.keeps(instance, view))

    def foreign_cordons(self, view: WorldView) -> Iterator[str]:
        """Yield nodes whose cordon of others was removed, but not by operators."""
        lifted, self._lifted = self._lifted, []
        yield from (node for node, instance in lifted if not self._lifted_by_operators(instance, view, 0.0))

    def released(self, view: WorldView) -> Iterator[str]:
        """Yield instances ended with pods by our answer to the last hook, or by our TerminateInstance where no hook of
        ours holds it.
        """
        for instance, pods in self._killed("released", view):
            if not self._times.announced(instance, view):
                yield f"{instance} with {', '.join(pods)}"

    def too_early(self, view: WorldView) -> Iterator[str]:
        """Yield such instances while EC2 has announced that it takes them later."""
        for instance, pods in self._killed("too early", view):
            taken = self._times.asked.taken_at(instance, view.now)
            if taken is not None and view.now < taken:
                yield f"{instance} is released {taken - view.now:.0f} s before EC2 takes it, with {', '.join(pods)}"

    def untainted(self, view: WorldView) -> Iterator[str]:
        """Yield nodes that lost our taint while a termination is open. A termination that returns its node to service
        removes its own taint. A write may be older than the claim, by seconds or by as long as an API server in trouble
        takes: claims are in another store, so the node is tainted again; so it is where a step outlives its execution.
        """
        bared, self._bared = self._bared, []
        for instance in bared:
            states = view.states_of(instance)
            if instance not in view.open_since or not view.running(instance) or GIVES_BACK in states:
                continue
            stopped = view.rested_since(instance)
            outlived = stopped is not None and view.now - stopped < OUTLIVES  # the step that returned it to service
            takes = LONGEST_CALL if view.troubled(LONGEST_CALL) else WRITE_TAKES
            by_operator = self._lifted_by_operators(instance, view, 0.0)
            if by_operator or outlived or view.now - view.open_since[instance] < takes:
                self._outrun[instance] = view.now
            else:
                yield f"{instance}, whose executions are in {', '.join(states) or 'no state'}"
        yield from self._not_tainted_again(view)

    def _not_tainted_again(self, view: WorldView) -> Iterator[str]:
        for instance, at in list(self._outrun.items()):
            at_work = (
                instance in view.open_since and view.running(instance) and view.working_since(instance) is not None
            )
            if self._is_tainted.get(instance, True) or not at_work:
                del self._outrun[instance]
            elif view.stood_still(TAINTED_AGAIN):
                self._outrun[instance] = view.now
            elif view.now - at > TAINTED_AGAIN and not view.troubled(TAINTED_AGAIN):
                del self._outrun[instance]
                yield f"{instance} has lost its taint to a write older than its claim, and no drain has repeated it"

    def claims(self, view: WorldView) -> Iterator[str]:
        """Yield warned instances without a timely claim: where only the Kubernetes API has trouble, the claim does not
        wait for it.
        """
        if not view.only_kubernetes_fails:
            return
        for instance, at in self._news.of("to claim", view.warned):
            if policy_of(view, group_of(view, instance)) is not None:
                self._unclaimed.setdefault(instance, at)
        for instance, at in list(self._unclaimed.items()):
            if instance in view.open_since or not view.running(instance):
                del self._unclaimed[instance]
            elif view.now - at > CLAIMED_WITHIN:
                del self._unclaimed[instance]
                yield f"{instance} was warned {view.now - at:.0f} s ago"

    def _killed(self, name: str, view: WorldView) -> Iterator[tuple[str, list[str]]]:
        answered = self._news.of(f"answers {name}", view.completed_hooks)
        gone = [instance for group, hook, instance, by_us in answered if by_us and view.ends(hook, group)]
        gone += self._news.of(f"asked {name}", view.terminations)
        for instance in gone:
            if not view.running(instance) or _held_by_us(instance, view) or self._times.may_release(instance, view):
                continue
            if pods := left_behind(instance, view, asked=not self._times.without_kubelet(instance, view)):
                yield instance, pods

    def deadlines(self, view: WorldView) -> Iterator[str]:
        """Yield instances not drained in time: without faults a warning comes at once, and two minutes are enough for
        what budgets do not forbid.
        """
        if not view.faultless:
            return
        for instance, at in self._news.of("warned", view.warned):
            if policy_of(view, group_of(view, instance)) is not None:
                self._warned.setdefault(instance, at + NOTICE)
        for instance, end in list(self._warned.items()):
            self._note_hold(instance, view)
            if view.running(instance):
                self._note_evictable(instance, view)
            lifted = self._lifted_by_operators(instance, view, TAINTED_AGAIN)
            if view.running(instance) and self._is_bare(instance, view.now) and not lifted:
                yield f"{instance} will be taken, and its node has carried no taint for {UNTAINTED:.0f} s"
            if view.now >= end or (not view.running(instance) and view.now >= end - RELEASED):
                yield from self._judge(instance, end, view)
            if view.now >= end or not view.running(instance):
                del self._warned[instance]
                self._held.pop(instance, None)
                self._bare.pop(instance, None)
                self._free.pop(instance, None)

    def _judge(self, instance: str, end: float, view: WorldView) -> Iterator[str]:
        group = group_of(view, instance)
        policy = policy_of(view, group)
        if policy is None:
            return  # it was detached
        forced = policy.drain.force or view.forced(instance)  # pods are deleted so that their grace ends with the node
        if end - self._held.get(instance, end) > IN_GOOD_TIME and not forced:
            yield f"{instance} is taken while a hook of ours waits"
        if pods := untouched(instance, end - NOTICE, self._times.with_flags(instance, policy.drain, view), view):
            yield f"{instance} is taken before eviction of {', '.join(pods)}"
        free = self._free.get(instance, {})
        if held := [pod for pod, since in sorted(free.items()) if end - since > FREE_FOR and pod not in pods]:
            yield f"{instance} is taken before eviction of {', '.join(held)}, which their budgets allowed"

    def _note_evictable(self, instance: str, view: WorldView) -> None:
        """Note since when each pod could have been evicted without a break."""
        policy = policy_of(view, group_of(view, instance))
        drain = self._times.with_flags(instance, policy.drain, view) if policy else None
        now = evictable(instance, drain, view) if drain else set()
        known = self._free.get(instance, {})
        self._free[instance] = {pod: known.get(pod, view.now) for pod in now}

    def _lifted_by_operators(self, instance: str, view: WorldView, within: float) -> bool:
        """Return whether an operator has lifted taint or cordon of its node in the last seconds."""
        requests = self._times.asked.of(instance)
        return any(asked.kind is Kind.LIFTED and view.now - asked.at <= within for asked in requests)

    def _note_hold(self, instance: str, view: WorldView) -> None:
        if _held_by_us(instance, view):
            self._held.setdefault(instance, view.now)
        else:
            self._held.pop(instance, None)

    def _is_bare(self, instance: str, now: float) -> bool:
        """Return whether the node has lacked our taint for too long, once: a node that is returned to service at the
        moment of the warning is tainted again within seconds.
        """
        if self._is_tainted.get(instance, True):
            self._bare.pop(instance, None)
            return False
        bare = now - self._bare.setdefault(instance, now) > UNTAINTED
        if bare:
            self._bare[instance] = float("inf")
        return bare

    def _compare(self, name: str, old: Obj, new: Obj) -> None:
        if tainted_by_others(old) or tainted_by_others(new):
            return
        comes, goes = is_tainted(new) and not is_tainted(old), is_tainted(old) and not is_tainted(new)
        if comes:
            self._budgets.note_taint(instance_behind(new))
            if well_known.CORDONED_FOR not in annotations_of(old):  # an upgrade's cordon outlives the taint
                self._note_cordon(name, old)
        elif goes:
            self._bared.append(instance_behind(new))
            if name in self._cordoned and _unschedulable(new):
                self._left.append((name, instance_behind(new)))
            if name in self._theirs and not _unschedulable(new):
                self._lifted.append((name, instance_behind(new)))
        if not _unschedulable(new):
            self._note_uncordoned(name, under_taint=is_tainted(old) and is_tainted(new) and _unschedulable(old))

    def _note_cordon(self, name: str, old: Obj) -> None:
        if not _unschedulable(old) or name in self._cordoned:  # or an operator has lifted the taint alone
            self._cordoned.add(name)
        elif name not in self._unknown:
            self._theirs.add(name)

    def _note_uncordoned(self, name: str, *, under_taint: bool) -> None:
        if under_taint:
            self._unknown.add(name)
        self._theirs.discard(name)
        self._cordoned.discard(name)


def _held_by_us(instance: str, view: WorldView) -> bool:
    return any(held == instance and view.ours(hook, group) for group, hook, held in view.waiting)


def _unschedulable(node: Obj) -> bool:
    return bool(node["spec"].get("unschedulable"))
