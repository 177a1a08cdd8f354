"""Planted builds: edges of upgrades that only rare worlds come to."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

UPGRADE = "leeward.upgrade"

OF_UPGRADE_EDGES = (
    Planted(
        name="an upgrade cordons its new nodes as well",
        story="cordons every member of the group",
        edits=(edit(f"{UPGRADE}.terminations.set_cordons", "one.age is Age.OLD and (", "("),),
        tests=("tests/simulation/test_upgrade_cordons.py",),
    ),
    Planted(
        name="a failed upgrade leaves its new nodes cordoned",  # the rule LEFTOVER fails the test
        story="cordons every member of the group, and returns the nodes that are still to be replaced",
        edits=(
            edit(f"{UPGRADE}.terminations.set_cordons", "one.age is Age.OLD and (", "("),
            edit(f"{UPGRADE}.terminations.set_cordons", "elif one.age is Age.NEW and", "elif False and"),
            edit(
                f"{UPGRADE}.completion.give_back", "mine = [node for node in nodes if", "mine = [node for node in () if"
            ),
        ),
        tests=(
            "tests/simulation/test_upgrade_cordons.py"
            "::test_an_upgrade_whose_pods_never_leave_ends_and_leaves_no_node_cordoned",
        ),
    ),
    Planted(
        name="surplus drains beside other surplus without a limit",
        story="leaves the limits of drains to upgrades",
        edits=(edit("leeward.termination.surplus_turn._wait", "if not awaited:", "if True:"),),
        tests=("tests/simulation/test_surplus_turns.py",),
    ),
    Planted(
        name="a surplus drains beside nodes that a run has claimed",
        story="counts records of terminations alone",
        edits=(edit("leeward.termination.surplus_turn._queue", "run.open", "False"),),
        tests=("tests/unit/termination/test_surplus_turn.py",),
    ),
    Planted(
        name="an upgrade drains beside a surplus that waits for its turn",
        story="counts a node from its taint on",
        edits=(edit(f"{UPGRADE}.waves.drain_selection.busy_nodes", "name in snapshot.terminating or ", ""),),
        tests=("tests/unit/upgrade/waves",),
    ),
    Planted(
        name="an upgrade does not see a surplus that was claimed since it looked",
        story="looks once and then acts",
        edits=(
            edit(
                f"{UPGRADE}.waves.shared_budgets.still_allowed",
                "surplus = surplus_requested(preflight.snapshot.groups.values(), ports.claims)",
                "surplus = frozenset()",
            ),
        ),
        tests=("tests/unit/upgrade/waves/test_shared_budgets.py",),
    ),
    Planted(
        name="an abort drains all new nodes at once",
        story="exempts what it undoes from the limits of drains",
        edits=(
            edit(
                f"{UPGRADE}.completion._candidates",
                "may_leave_now(preflight, record, free[: len(record.unassigned)])",
                "free",
            ),
        ),
        tests=("tests/simulation/test_upgrade_surplus.py",),
    ),
    Planted(
        name="a value of MaxSize that Leeward set is taken for its owner's",
        story="writes nothing before MaxSize is lowered, dies after the call and leaves it at that value for good",
        edits=(edit("leeward.termination.maximum_size.put_back", "item = item.raised_to(lowest)", "pass"),),
        tests=("tests/unit/upgrade/test_maximum.py",),
    ),
    Planted(
        name="a pass between the item and the call forgets the owner's MaxSize",
        story="settles an item whose value the group does not have, also one that is about to be set",
        edits=(
            edit(
                "leeward.termination.maximum_size.put_back",
                "or rest.holders or _in_use(name, cluster, ports, works, ending)",
                "or rest.holders",
            ),
        ),
        tests=("tests/unit/upgrade/test_maximum.py",),
    ),
    Planted(
        name="MaxSize stays raised where others have used it",
        story="puts it back once the desired size fits and never thinks of it while it does not",
        edits=(edit("leeward.termination.maximum_size.put_back", "max(item.before, group.desired)", "item.before"),),
        tests=("tests/unit/upgrade/test_maximum.py",),
    ),
    Planted(
        name="a launch that has ended serves its zone for good",
        story="counts what was launched and not what is there",
        edits=(
            edit(
                f"{UPGRADE}.rollout._resized", "record = settled(record, observation, activities, ports.claims)", "pass"
            ),
        ),
        tests=("tests/simulation/test_upgrade_ended_launches.py",),
    ),
    Planted(
        name="a zone whose launches always end gets others without end",
        story="bounds the time and not the number",
        edits=(edit(f"{UPGRADE}.surge.launches.is_worn_out", ">= MOST_IN_A_ZONE", ">= 1000"),),
        tests=("tests/simulation/test_upgrade_ended_launches.py",),
    ),
    Planted(
        name="a decrement of a new node is a size of the owner's, of an old one it is not",
        story="settles launches by the node that an actor happens to name",
        edits=(edit(f"{UPGRADE}.surge.launches._taken_by_others", "if lacking > 0 and record.ahead", "if False"),),
        tests=("tests/simulation/test_upgrade_ended_launches.py",),
    ),
    Planted(
        name="an upgrade waits for labels that a script alone names",
        story="takes what it reads in a script for what nodes get",
        edits=(edit(f"{UPGRADE}.preflight.gather.expected_labels", "if shown.get(key) == value", ""),),
        tests=(
            "tests/simulation/test_upgrade_creation_failures.py"
            "::test_a_label_of_a_script_that_no_old_node_carries_is_not_waited_for",
        ),
    ),
    Planted(
        name="a repeated abort begins an upgrade",
        story="takes the end of an upgrade for a free group, whatever is asked",
        edits=(edit(f"{UPGRADE}.start._has_nothing_left", 'or (action == "abort" and not record.error)', ""),),
        tests=("tests/simulation/test_upgrades.py::test_an_abort_that_is_repeated_begins_no_upgrade",),
    ),
    Planted(
        name="alarms without a canary watch no wave",
        story="starts the next wave before an alarm can know what the first one has broken",
        edits=(edit(f"{UPGRADE}.control.canary_of", "or not update.alarms", "or True"),),
        tests=("tests/simulation/test_bad_image.py",),
    ),
    Planted(
        name="a rollback has the time for new nodes that the upgrade has left",
        story="counts the search for capacity from the beginning of the upgrade",
        edits=(edit(f"{UPGRADE}.steps.start_rollback", "phase_since=ports.clock.now()", "phase_since=None"),),
        tests=("tests/unit/upgrade/test_completion.py",),
    ),
    Planted(
        name="a zone that opens again gets no new node",
        story="counts new nodes against old ones and not by the zones for which the gate waits",
        edits=(edit(f"{UPGRADE}.surge.launches.launches", "gating or not record.cordoned", "False"),),
        tests=("tests/unit/upgrade/surge/test_launches.py",),
    ),
    Planted(
        name="a member that never joined before the start stays and closes the gate",
        story="ends what the upgrade has launched itself",
        edits=(
            edit(
                f"{UPGRADE}.terminations._is_late",
                "or member.age is Age.NEW",
                "or (member.age is Age.NEW and instance.launched >= record.began)",
            ),
        ),
        tests=("tests/simulation/test_upgrade_creation_failures.py",),
    ),
    Planted(
        name="an automatic upgrade begins as soon as the image moves",
        story="compares images and not since when they differ",
        edits=(edit(f"{UPGRADE}.automatic.reason_to_wait", "snapshot.now - since < after", "False"),),
        tests=("tests/unit/upgrade/test_automatic.py",),
    ),
    Planted(
        name="an automatic upgrade that has failed is started again",
        story="counts on the name of the execution, which is free again after ninety days",
        edits=(edit(f"{UPGRADE}.automatic._may_try", " and record.request.automatic != image", ""),),
        tests=("tests/unit/upgrade/test_automatic.py",),
    ),
    Planted(
        name="a rollback of an automatic upgrade launches the new image",
        story="returns to the version before, of which EC2 resolves the parameter again",
        edits=(edit(f"{UPGRADE}.targets._behind_a_parameter", "if previous is None and old:", "if False:"),),
        tests=("tests/unit/upgrade/test_automatic.py",),
    ),
    Planted(
        name="an alarm that begins to ring while a launch hangs is not seen",
        story="reads the alarms once for each turn",
        edits=(edit(f"{UPGRADE}.rollout.take_turn", "not alarmed and watch.allows()", "not alarmed"),),
        tests=("tests/unit/upgrade/test_alarms.py",),
    ),
    Planted(
        name="nodes that a killed step recorded are started while an alarm rings",
        story="holds what is chosen now and not what was chosen before",
        edits=(edit(f"{UPGRADE}.rollout.take_turn", "not alarmed and watch.allows()", "True"),),
        tests=("tests/unit/upgrade/test_alarms.py",),
    ),
    Planted(
        name="alarms that cannot be read count as quiet",
        story="treats an error of CloudWatch as no news",
        edits=(edit("leeward.workflow.alarms.read_each", "unreadable if each else AlarmReading()", "AlarmReading()"),),
        tests=("tests/unit/upgrade/test_alarms.py",),
    ),
    Planted(
        name="an upgrade offsets every launch that is left, however much larger the group is",
        story="shrinks the group for a launch that Cluster Autoscaler has taken back",
        edits=(edit("leeward.upgrade.completion.request_offsets", "[: max(len(", "[: 0 * max(len("),),
        tests=("tests/unit/upgrade/test_completion.py",),
    ),
    Planted(
        name="what Cluster Autoscaler removes while nodes roll is taken off the owner's size",
        story="counts every decrement by others before the oldest launch that is left",
        edits=(edit("leeward.upgrade.rollout._without_taken", "or record.launched > len(members)", ""),),
        tests=("tests/unit/upgrade/test_rollout.py",),
    ),
    Planted(
        name="what an owner removes while the first launch hangs is added again",
        story="takes the size of before the launches for what the owner wants",
        edits=(
            edit(
                "leeward.upgrade.rollout._without_taken",
                "if not members or record.launched > len(members):",
                "if True:",
            ),
        ),
        tests=("tests/unit/upgrade/test_rollout.py",),
    ),
    Planted(
        name="a start measures the sizes by what its record knew when the last one was stopped",
        story="takes a launch that was offset since then for one that is still in the sizes",
        edits=(edit(f"{UPGRADE}.steps.prepare", "concluded(record, ports.claims)", "record"),),
        tests=("tests/unit/upgrade/test_measured_sizes.py",),
    ),
    Planted(
        name="only the first start of an upgrade measures the sizes",
        story="takes the sizes of before the upgrade for what the owner wants now",
        edits=(edit(f"{UPGRADE}.steps.prepare", "if made.in_sizes", "if record.prepared"),),
        tests=("tests/unit/upgrade/test_measured_sizes.py",),
    ),
    Planted(
        name="the launch of a termination claimed just now is counted as the group's size",
        story="finds the other terminations of the group in the index of open records alone",
        edits=(
            edit(
                "leeward.upgrade.observation._others",
                "(*claims.open_instances(), *members)",
                "claims.open_instances()",
            ),
        ),
        tests=("tests/state_machines/test_maximum_size.py",),
    ),
    Planted(
        name="MaxSize stays raised in a group that no policy selects",
        story="reconciliations the groups that the policies select now",
        edits=(
            edit(
                "leeward.reconcile.leftovers.put_back_maximum_sizes",
                "read_all(state.groups)",
                "read_all(group.name for group in state.selected)",
            ),
        ),
        tests=("tests/unit/upgrade/test_completion.py",),
    ),
    Planted(
        name="more nodes come ahead than maxSurge allows",
        story="limits the first new nodes alone",
        edits=(
            edit(
                "leeward.upgrade.surge.sizes.most_ahead",
                "min(surge_limit + TURNS_AHEAD * parallel, most)",
                "surge_limit + TURNS_AHEAD * parallel",
            ),
        ),
        tests=("tests/unit/upgrade/surge/test_sizes.py",),
    ),
    Planted(
        name="the gate waits for more zones than maxSurge can serve",
        story="asks for a new node in each zone, whatever the surge",
        edits=(edit("leeward.upgrade.gate._enough", "min(len(wanted), most)", "len(wanted)"),),
        tests=("tests/unit/upgrade/test_gate.py",),
    ),
    Planted(
        name="an instance that still drains takes no place of maxSurge",  # the rule MAX_SURGE fails the test
        story="counts what the desired size counts",
        edits=(edit("leeward.upgrade.surge.launches._still_ending", "{*record.under_way, *record.given_up}", "()"),),
        tests=("tests/simulation/test_upgrade_terminate_first.py",),
    ),
    Planted(
        name="the empty node of an upgrade does not wait for the launch that it offsets",
        story="settles it as any other node, so that its group replaces it beside the launch",
        edits=(edit("leeward.termination.deadlines.settle_seconds", "if record.awaits_launch else", "if False else"),),
        tests=("tests/unit/termination/test_deadlines.py",),
    ),
    Planted(
        name="a launch is not assigned to the node that started before it",
        story="assigns launches to nodes that start",
        edits=(edit(f"{UPGRADE}.rollout.take_turn", "record, late = with_late_offsets(record, ends)", "late = []"),),
        tests=("tests/simulation/test_upgrade_terminate_first.py",),
    ),
    Planted(
        name="a pause counts as time in which no new node has come",
        story="measures from the beginning of the phase",
        edits=(edit(f"{UPGRADE}.waits.resumed", "if run.next not in HELD.values():", "if True:"),),
        tests=("tests/simulation/test_upgrades.py",),
    ),
    Planted(
        name="an old instance whose Node is deleted is available",
        story="counts Nodes, and takes an instance without one for gone",
        edits=(
            edit(
                "leeward.upgrade.waves.drain_selection.busy_nodes",
                "busy = _without_a_node(preflight, old | record.under_way.keys())",
                "busy = []",
            ),
        ),
        tests=("tests/unit/upgrade/waves/test_unavailable_nodes.py",),
    ),
    Planted(
        name="an upgrade waits without an end for nodes that others terminate",
        story="polls until the node is gone",
        edits=(edit(f"{UPGRADE}.rollout._stalled", "if not stalled:", "if True:"),),
        tests=("tests/unit/upgrade/test_waits.py",),
    ),
    Planted(
        name="an abort waits without an end for nodes that do not finish",
        story="polls until the node is gone",
        edits=(edit(f"{UPGRADE}.steps.wait_for_terminations", "if stalled:", "if False:"),),
        tests=("tests/unit/upgrade/test_waits.py",),
    ),
    Planted(
        name="an upgrade waits without an end for a budget that another group holds",
        story="takes a budget of 0 for a closed window",
        edits=(edit(f"{UPGRADE}.rollout._no_budget", "if not holders:", "if True:"),),
        tests=("tests/unit/upgrade/test_waits.py",),
    ),
    Planted(
        name="an upgrade waits without an end for a raised desired size",
        story="polls until the group has launched",
        edits=(edit(f"{UPGRADE}.completion._not_offset", "if not stalled:", "if True:"),),
        tests=("tests/unit/upgrade/test_waits.py",),
    ),
    Planted(
        name="an instance of a raised desired size is adopted again once its offset is requested",
        story="adopts whatever new member awaits no offset",
        edits=(edit(f"{UPGRADE}.surge.orders.adopted", "{*record.ahead, *record.counted}", "{*record.ahead}"),),
        tests=("tests/unit/upgrade/test_waits.py",),
    ),
    Planted(
        name="an upgrade watches an update of EKS without an end",
        story="polls until EKS says that it has ended",
        edits=(edit(f"{UPGRADE}.managed.steps._in_progress", "if stalled:", "if False:"),),
        tests=("tests/unit/upgrade/managed/test_steps.py",),
    ),
    Planted(
        name="an upgrade launches ahead of time although an owner has scaled the group up",
        story="finds out about the owner while the drains go on",
        edits=(edit(f"{UPGRADE}.surge.launches.launches", " or record.others_seen is not None", ""),),
        tests=("tests/unit/upgrade/waves/test_early_starts.py",),
    ),
    Planted(
        name="an upgrade terminates instances in Standby",
        story="takes whatever is not leaving for a member",
        edits=(edit(f"{UPGRADE}.members._absence", "role in _ABSENT", "role is LifecycleRole.UNKNOWN"),),
        tests=("tests/unit/upgrade/test_left_out.py",),
    ),
    Planted(
        name="an upgrade terminates instances that are protected from scale-in",
        story="never reads ProtectedFromScaleIn",
        edits=(edit(f"{UPGRADE}.members._absence", "return Absence.PROTECTED if protected else None", "return None"),),
        tests=("tests/unit/upgrade/test_left_out.py",),
    ),
    Planted(
        name="disruption terminates instances that are protected from scale-in",
        story="never reads ProtectedFromScaleIn",
        edits=(edit("leeward.model.group.Group.protects", "member.protected for", "False for"),),
        tests=("tests/unit/disruption/test_candidates.py",),
    ),
    Planted(
        name="the reasons of failed drains grow with the group",
        story="writes down what was said of each node, until the item is larger than 400 KB",
        edits=(edit(f"{UPGRADE}.capacity_ledger._failed", "[-MOST_REASONS:]", ""),),
        tests=("tests/contract/test_large_upgrades.py",),
    ),
    Planted(
        name="a launch is written off whatever Auto Scaling refuses",
        story="takes every permanent error of a terminate for below MinSize",
        edits=(edit("leeward.termination.steps._terminate", "decrement and _at_minimum(record, groups)", "decrement"),),
        tests=("tests/state_machines/test_ledger_walks.py",),
    ),
    Planted(
        name="new nodes of an upgrade are booked in the wrong zone",
        story="takes the group's first zone for each launch",
        edits=(
            edit(
                f"{UPGRADE}.surge.orders.launch_ordered",
                "dict.fromkeys(answer.launched, order.zone)",
                'dict.fromkeys(answer.launched, "elsewhere")',
            ),
        ),
        tests=("tests/unit/upgrade/surge/test_orders.py",),
    ),
    Planted(
        name="nodes that a killed step has chosen are drained together, whatever runs on them by now",
        story="takes the limits of the moment of choice for those of the request",
        edits=(
            edit(
                f"{UPGRADE}.waves.shared_budgets.without_misfits",
                "if not left or within_limits(record, preflight):",
                "if left or not left:",
            ),
        ),
        tests=("tests/unit/upgrade/test_rollout.py",),
    ),
    Planted(
        name="a canary counts nodes that were taken back",
        story="counts whatever was once chosen",
        edits=(edit(f"{UPGRADE}.control._canary", "(record.started - record.taken_back)", "record.started"),),
        tests=("tests/unit/upgrade/test_control.py",),
    ),
    Planted(
        name="a node that a killed step has chosen is never drained",
        story="believes that what is written down has been done",
        edits=(
            edit(
                f"{UPGRADE}.rollout.take_turn",
                "unclaimed = [old for old in ledger.unclaimed if old in record.under_way]",
                "unclaimed = []",
            ),
        ),
        tests=("tests/unit/upgrade/test_rollout.py",),
    ),
    Planted(
        name="the gate opens before new nodes are Ready",
        story="looks whether the Node exists",
        edits=(edit(f"{UPGRADE}.gate._lacks", "if not node.ready:", "if False:"),),
        tests=("tests/unit/upgrade/test_gate.py",),
    ),
    Planted(
        name="an aborted upgrade leaves the group at the new version",
        story="uncordons the old nodes and forgets the launch template",
        edits=(
            edit(
                f"{UPGRADE}.steps._pointed_back",
                "point_group(record, group, before, ports.group_changes, ports.templates)",
                '""',
            ),
        ),
        tests=("tests/unit/upgrade/test_completion.py",),
    ),
    Planted(
        name="an upgrade takes the operator's larger size for its own surge",
        story="never looks whether others have scaled the group",
        edits=(
            edit(
                f"{UPGRADE}.capacity_ledger.detect_resize",
                "if record.others_scaled is not None or record.orders:",
                "if True:",
            ),
        ),
        tests=("tests/unit/upgrade/test_capacity_ledger.py",),
    ),
)
