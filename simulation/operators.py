"""Operators with kubectl and the AWS console: they cordon, drain, delete, terminate, detach, resize, start and stop."""

from leeward.model.termination import Cause, CauseKind, DrainOptions, Subject, execution_name
from local.cluster.objects import controller_of, name_of
from simulation.asked import Asked, Kind
from simulation.aws.compute import SimInstance, subnet_of
from simulation.convergence import is_tainted
from simulation.emptying import KUBECTL, Emptying, has_to_leave
from simulation.owners import detach, set_desired, terminate
from simulation.scene import Scene, subject

KUBELET_RESTARTS = 600.0  # a node that an operator deleted registers again
UNCORDONED_AFTER = 1200.0
KEPT_FOR = 3600.0  # drained alone; then its operator lifts the cordon
DETACHED_FOR = 1800.0  # then its owner ends it at EC2
WHO = "an operator"
FLAGS = (
    DrainOptions(disable_eviction=True, grace_seconds=1),
    DrainOptions(disable_eviction=True),
    DrainOptions(grace_seconds=5),
    DrainOptions(evict_unmanaged=False),
    DrainOptions(delete_local_data=False),
    DrainOptions(ignore_daemon_sets=False),
    DrainOptions(keep=True),
)


class Operators:
    """Actions of operators. Each takes a `pick`, which chooses the instance and the manner."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def cordon(self, pick: int) -> None:
        """Cordon a node, and uncordon it later."""
        if member := subject(self._scene, pick):
            self._set_unschedulable(member, unschedulable=True)
            self._uncordon_later(member)

    def delete_node(self, pick: int) -> None:
        """Delete the Node object; a kubelet that still runs registers it again."""
        member = subject(self._scene, pick)
        if member is not None and self._scene.cluster.store.find("nodes", member.node) is not None:
            self._scene.say(f"{WHO} deletes {member.node}")
            now = self._scene.timeline.now()
            self._scene.asked.append(Asked(at=now, instance=member.id, kind=Kind.MANUAL))
            self._scene.cluster.delete("nodes", member.node)
            again = member
            self._scene.timeline.after(KUBELET_RESTARTS, lambda: self._scene.rejoin(again), "kubelet restarts")

    def drain(self, pick: int) -> None:
        """Run `kubectl drain --ignore-daemonsets --delete-emptydir-data --timeout=10m`, with `--force` half
        the time.
        """
        if member := subject(self._scene, pick):
            self.drain_node(member, pick)

    def drain_node(self, member: SimInstance, pick: int) -> None:
        """Cordon first, as kubectl does; the node stays cordoned where pods without a controller forbid the rest.

        An emptied node is terminated through its group by half of them; the others uncordon it later.
        """
        scene, force, ends = self._scene, bool(pick >> 3 & 1), bool(pick >> 4 & 1)
        if scene.cluster.store.find("nodes", member.node) is None:
            return
        self._set_unschedulable(member, unschedulable=True)
        if not force and any(controller_of(pod) is None for pod in has_to_leave(scene.cluster, member.node)):
            scene.say(f"kubectl drain refuses {member.node}: a pod has no controller")
            self._uncordon_later(member)
            return
        scene.say(f"{WHO} drains {member.node}")

        def done(empty: bool) -> None:
            if not (empty and ends and terminate(scene, member, WHO, decrement=bool(pick >> 5 & 1))):
                self._uncordon_later(member)

        Emptying(scene, member.node, KUBECTL, done).begin()

    def terminate(self, pick: int) -> None:
        """Terminate an instance at EC2: the group notices by its health check."""
        if member := subject(self._scene, pick):
            self._scene.say(f"another tool terminates {member.id} at EC2")
            self._scene.fleet.end_instance(member, direct=True)

    def resize(self, pick: int) -> None:
        """Change a group's size by up to three: for fewer, the group chooses which members to terminate."""
        groups = list(self._scene.fleet.groups.values())
        group, by = groups[pick % len(groups)], 1 + (pick >> 4) % 3
        wanted = group.desired + by if pick >> 3 & 1 else max(group.desired - by, 1)
        set_desired(self._scene, group, min(wanted, group.maximum), WHO)

    def detach(self, pick: int) -> None:
        """Detach an instance for inspection; it is terminated half an hour later."""
        member = subject(self._scene, pick)
        if member is not None and detach(self._scene, member, WHO, decrement=bool(pick >> 3 & 1)):
            gone = member
            self._scene.timeline.after(
                DETACHED_FOR, lambda: self._scene.fleet.end_instance(gone, direct=True), "a detached instance ends"
            )

    def start_execution(self, pick: int) -> None:
        """Start node-termination manually: any name, also the one that the product would take; any instance, also one
        that does not exist or that no policy selects.
        """
        member = None if pick % 16 == 0 else subject(self._scene, pick)
        instance = "i-0123456789abcdef0" if member is None else member.id
        name = f"{instance}-1" if pick % 4 == 1 else f"manual-{pick}"
        self._scene.say(f"{WHO} starts execution {name} for {instance}")
        self._scene.started_manually.add(instance)
        if self._scene.flags and member is not None:
            name = self._with_flags(member, FLAGS[pick % len(FLAGS)])
        self._scene.system.machine.start(name, {"instance": instance})

    def _with_flags(self, member: SimInstance, options: DrainOptions) -> str:
        """Write what `leeward drain` writes before it starts an execution; return the execution's name."""
        now, group = self._scene.timeline.instant(), self._scene.fleet.groups[member.group]
        self._scene.asked.append(
            Asked(
                at=now.timestamp(),
                instance=member.id,
                kind=Kind.MANUAL,
                deletes=options.disable_eviction,
                keeps=options.keep,
                refuses_unmanaged=options.evict_unmanaged is False,
                refuses_local=options.delete_local_data is False,
            )
        )
        subject = Subject(
            instance=member.id,
            cluster=self._scene.cluster_name,
            group=group.name,
            zone=member.zone,
            subnet=subnet_of(member.zone),
            instance_type=member.type,
            capacity_type=member.described().capacity_type,
            node=member.node,
        )
        cause = Cause(id=f"manual#{now}", kind=CauseKind.MANUAL, at=now, options=options)
        record = self._scene.system.claims.claim(subject, cause, now)
        if options.keep:
            self._uncordon_later(member, KEPT_FOR)
        return execution_name(record.instance, record.attempt)

    def stop_execution(self, pick: int) -> None:
        """Stop one of the open executions."""
        names = sorted(self._scene.system.machine.executions)
        if names:
            self._scene.say(f"{WHO} stops {names[pick % len(names)]}")
            self._scene.system.machine.stop(names[pick % len(names)])

    def _uncordon_later(self, member: SimInstance, after: float = UNCORDONED_AFTER) -> None:
        later = self._scene.timeline.after
        later(after, lambda: self._set_unschedulable(member, unschedulable=False), "operator uncordons")

    def _set_unschedulable(self, member: SimInstance, *, unschedulable: bool) -> None:
        """Cordon, or uncordon a node that carries no taint: an operator lifts only such a cordon."""
        node = self._scene.cluster.store.find("nodes", member.node)
        if node is not None and (unschedulable or not is_tainted(node)):
            self._scene.say(f"{WHO} {'cordons' if unschedulable else 'uncordons'} {name_of(node)}")
            self._scene.cluster.patch("nodes", member.node, {"spec": {"unschedulable": unschedulable}})
