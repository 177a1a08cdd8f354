"""Planted builds: drains that must not begin or not end, nodes that stay out of service, and terminations without a
policy or a record."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

TERMINATION = "leeward.termination"

OF_ENDINGS = (
    Planted(
        name="the pods of a spot node wait until its record can be read",
        story="repeats the step until a newer version comes by",
        edits=(
            edit(
                f"{TERMINATION}.prompt_eviction.read_or_evict",
                "except (AwsUnavailableError, NewerRecordError, ThrottledError):",
                "except (AwsUnavailableError, ThrottledError):",
            ),
        ),
        tests=("tests/simulation/test_two_versions.py",),
    ),
    Planted(
        name="a hook runs out while only a newer version can read its record",
        story="does nothing about an instance whose record is not known",
        edits=(edit("leeward.reconcile.hooks._settle_endings", "if member.id in records.newer]", "if False]"),),
        tests=("tests/simulation/test_two_versions.py",),
    ),
    Planted(
        name="a launch hook that a removed policy named abandons each new instance",
        story="answers launch hooks of the groups that policies select",
        edits=(edit("leeward.reconcile.hooks.our_hooks", "if policy is None and transition == LAUNCHING", "if False"),),
        tests=("tests/unit/reconcile/test_reconciler.py",),
    ),
    Planted(
        name="a launch hook that a removed policy named abandons each instance of a warm pool",
        story="leaves the hooks of a group that no policy selects to the minute reconciler, which sees no warm pool",
        edits=(edit("leeward.interruption.hooks.answers", "return action.launching and", "return False and"),),
        tests=("tests/handlers/interruption/test_messages.py",),
    ),
    Planted(
        name="no pod of a spot node is evicted while the table is away",
        story="starts a termination once its claim is written",
        edits=(edit("leeward.interruption.effects._claim", "cause.kind in ABRUPT and", "False and"),),
        tests=("tests/simulation/test_table_away.py",),
    ),
    Planted(
        name="a drain whose table goes away waits for it",
        story="repeats the step until the record can be read",
        edits=(edit(f"{TERMINATION}.prompt_eviction._evict_unrecorded", "if not run.taken or", "if True or"),),
        tests=("tests/state_machines/test_table_away.py",),
    ),
    Planted(
        name="a replayed warning ends a running node at once",
        story="believes a warning however old it is",
        edits=(edit("leeward.model.termination._is_overdue", "cause.kind in ABRUPT and", "False and"),),
        tests=("tests/state_machines/test_overdue_warnings.py",),
    ),
    Planted(
        name="a node without a kubelet is held for as long as its pods' grace",
        story="waits for every pod that was evicted, with or without a kubelet",
        edits=(edit(f"{TERMINATION}.decisions.waits_for_no_kubelet", "if node.ready or", "if True or"),),
        tests=("tests/state_machines/test_dead_kubelets.py",),
    ),
    Planted(
        name="the time-out of a drain cuts the grace of pods on a living node",
        story="takes every node under repair for dead",
        edits=(edit(f"{TERMINATION}.decisions.waits_for_no_kubelet", "if node.ready or", "if False and"),),
        tests=("tests/state_machines/test_dead_kubelets.py",),
    ),
    Planted(
        name="a drain takes an operator's cordon for its own",
        story="notes every cordon",
        edits=(edit("leeward.model.node.tainted", "if cordon and not node.unschedulable and", "if cordon and"),),
        tests=("tests/unit/test_node_cordons.py",),
    ),
    Planted(
        name="a node whose taint was removed during its drain stays cordoned",
        story="undoes what came with the taint, and only where the taint is there",
        edits=(edit("leeward.model.node.untainted", "ours = well_known", "ours = bool(node.taints) and well_known"),),
        tests=("tests/unit/test_node_cordons.py",),
    ),
    Planted(
        name="our hook is not answered once its group's policy is removed",
        story="asks the policies of now which hooks are ours",
        edits=(edit(f"{TERMINATION}.situation.of_ours", "is_put_by_sync(hook) or ", ""),),
        tests=("tests/state_machines/test_removed_policies.py",),
    ),
    Planted(
        name="a hook that a removed policy named is not answered",
        story="forgets which hooks were heartbeaten",
        edits=(edit(f"{TERMINATION}.situation.of_ours", " | record.heartbeats.keys()", ""),),
        tests=("tests/state_machines/test_removed_policies.py",),
    ),
    Planted(
        name="a hook that a removed policy named holds the nodes that a run requests later",
        story="knows the hooks of policies in force alone",
        edits=(edit(f"{TERMINATION}.situation.of_ours", "if policy is None and any(", "if False and any("),),
        tests=("tests/state_machines/test_removed_policies.py",),
    ),
    Planted(
        name="pods that come to a node that waits for its reboot are not drained",
        story="looks for a removed taint in drains alone",
        edits=(edit(f"{TERMINATION}.reboot._with_node", "if node.disrupted_by is None and missing", "if False"),),
        tests=("tests/state_machines/test_scheduled_reboots.py",),
    ),
    Planted(
        name="a critical pod ends with its scaled-in node behind a pod that is blocked",
        story="lets later waves begin in time for deadlines of EC2 alone",
        edits=(edit(f"{TERMINATION}.eviction._Step.look", "if policy.force or role_of", "if True or role_of"),),
        tests=("tests/state_machines/test_drains.py",),
    ),
    Planted(
        name="a launch replaced by a node of an earlier target is never settled",
        story="takes new nodes alone for replacements of the group",
        edits=(
            edit(
                "leeward.upgrade.surge.launches._heir",
                "instance is not None and",
                "instance is not None and member.age is Age.NEW and",
            ),
        ),
        tests=("tests/unit/upgrade/test_ended_launches.py",),
    ),
    Planted(
        name="a decrement by others settles two launches of an upgrade",
        story="forgets that the decrement of an ended launch has settled another",
        edits=(edit("leeward.upgrade.surge.launches._ended", "own = new not in record.taken", "own = True"),),
        tests=("tests/unit/upgrade/test_ended_launches.py",),
    ),
    Planted(
        name="a broken node that a budget holds is replaced again every hour",
        story="closes the record of every node whose pods did not leave",
        edits=(edit(f"{TERMINATION}.decisions.comes_again", " or is_broken(record)", ""),),
        tests=("tests/state_machines/test_broken_nodes.py",),
    ),
    Planted(
        name="the gate waits for a zone in which nothing is launched any more",
        story="asks for a new node in each zone, also once another writer has scaled the group",
        edits=(
            edit(
                "leeward.upgrade.gate.gate_of",
                "zones_to_serve(preflight) if launches else frozenset()",
                "zones_to_serve(preflight)",
            ),
        ),
        tests=("tests/unit/upgrade/test_zonal_shifts.py",),
    ),
    Planted(
        name="a broken node that a budget holds takes new pods",
        story="removes the taint of every node whose pods did not leave",
        edits=(edit(f"{TERMINATION}.node_removal._returned", "decisions.is_broken(record) or ", ""),),
        tests=("tests/state_machines/test_broken_nodes.py",),
    ),
    Planted(
        name="a deletion is requested on a look from before the taint",
        story="validates again only what has launched something",
        edits=(
            edit(
                "leeward.disruption.steps.validate_again",
                "record = written(revalidated(record, snapshot, ports.deployment, ports.budget), ports.disruptions)",
                "record = record",
            ),
        ),
        tests=("tests/simulation/test_late_pods.py",),
    ),
    Planted(
        name="a voluntary drain evicts the pod that was bound at the last moment",
        story="relies on the validation of the run",
        edits=(edit(f"{TERMINATION}.eviction.work", "step.reason_not_to_begin()", '""'),),
        tests=("tests/simulation/test_late_pods.py",),
    ),
    Planted(
        name="a launch that a rollback has made old serves its zone",
        story="counts launches by their place, whatever they run",
        edits=(
            edit(
                "leeward.upgrade.surge.launches._outdated",
                "{one.instance.id for one in preflight.old} & record.ahead.keys()",
                "set()",
            ),
        ),
        tests=("tests/unit/upgrade/surge/test_launches.py",),
    ),
    Planted(
        name="nodes of an earlier target use up the raises of the desired size",
        story="counts every launch that waits for an old node as a new node of some zone",
        edits=(
            edit(
                "leeward.upgrade.surge.orders._within_limit",
                "record.ahead.keys() - {member.instance.id for member in preflight.old}",
                "record.ahead.keys()",
            ),
        ),
        tests=("tests/unit/upgrade/surge/test_orders.py",),
    ),
    Planted(
        name="the desired size is raised once, wherever the group launches",
        story="trusts the group to choose the zones of the old nodes",
        edits=(edit("leeward.upgrade.surge.orders._missing", "int(waited or ", "int(False and "),),
        tests=("tests/simulation/test_upgrade_creation_failures.py",),
    ),
    Planted(
        name="the gate waits for a zone that no raise of the desired size reaches",
        story="waits for each zone with old nodes, whichever zones the group chooses",
        edits=(edit("leeward.upgrade.steps._opened", "reach=reach", "reach=None"),),
        tests=("tests/simulation/test_upgrade_creation_failures.py",),
    ),
    Planted(
        name="the desired size is raised no more once twice the zones have come",
        story="counts the launches of an earlier start as tries of this one",
        edits=(edit("leeward.upgrade.surge.orders._missing", "waited or ", ""),),
        tests=("tests/simulation/test_upgrade_creation_failures.py",),
    ),
    Planted(
        name="a pod's own opt-out is read and not asked",
        story="leaves opt-outs to the warnings before an upgrade",
        edits=(
            edit(
                "leeward.disruption.do_not_disrupt.why_pod_stays",
                "for one in pod_opt_outs(pod, now):",
                "for one in ():",
            ),
        ),
        tests=("tests/simulation/test_disruption_run.py",),
    ),
    Planted(
        name="our hook on a group that no policy selects is never answered",
        story="looks at selected groups alone",
        edits=(edit("leeward.reconcile.hooks.our_hooks", "hook.metadata == ports.hook_mark", "False"),),
        tests=("tests/unit/reconcile/test_reconciler.py",),
    ),
    Planted(
        name="an upgrade that is started again has no time for new nodes",
        story="counts the quarter of an hour from the first start",
        edits=(edit("leeward.upgrade.start._resumed", "phase_since=clock.now(), proven=None", "proven=None"),),
        tests=("tests/simulation/test_upgrade_creation_failures.py",),
    ),
    Planted(
        name="an upgrade whose group others scale before its first launch launches no more",
        story="leaves the size as others have changed it, and its gate waits",
        edits=(
            edit("leeward.upgrade.rollout._resized", "if not record.in_sizes and (", "if False and ("),
            edit("leeward.upgrade.rollout._resized", "if gating and not left.in_sizes", "if False"),
        ),
        tests=("tests/unit/upgrade/test_rollout.py",),
    ),
    Planted(
        name="an upgrade whose group is pointed elsewhere replaces new nodes without end",
        story="takes every node for old that is not on its target, whatever the group launches",
        edits=(
            edit("leeward.upgrade.rollout._unless_moved", "if instead else permission", "if False else permission"),
        ),
        tests=("tests/unit/upgrade/test_template_moves.py",),
    ),
    Planted(
        name="an upgrade that is started again points the group back at a version that its owner has left",
        story="goes on with the target that it has recorded",
        edits=(edit("leeward.upgrade.start._retargeted", "as_launched(record) if moved else record", "record"),),
        tests=("tests/simulation/test_template_moves.py",),
    ),
    Planted(
        name="pods of a spot instance wait for a group that does not take the request before the drain",
        story="fails the step until the group answers",
        edits=(edit("leeward.termination.steps.terminate", "if run.next is not Next.TERMINATE_FIRST", "if True"),),
        tests=("tests/state_machines/test_denied_calls.py",),
    ),
    Planted(
        name="an abort takes the group away from the version that its owner has set since",
        story="points the group back, whatever it launches",
        edits=(edit("leeward.upgrade.steps._pointed_back", "if others is not None:", "if False:"),),
        tests=("tests/simulation/test_template_moves.py",),
    ),
)
