"""Planted builds: repair, finalizers, sync and notifications."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

RECONCILE = "leeward.reconcile"

OF_REPAIR = (
    Planted(
        name="an upgrade whose execution was stopped ends in silence",
        story="announces ends that a step has recorded",
        edits=(
            edit(
                "leeward.upgrade.reconciler._stopped",
                "stopped=clock.now(), hold=None",
                "hold=None",
            ),
        ),
        tests=("tests/unit/upgrade/test_reconciler.py",),
    ),
    Planted(
        name="an upgrade of a deleted group never ends",
        story="restores the group before it writes that the execution is over",
        edits=(
            edit(
                "leeward.upgrade.completion.restore_group", "suppress(ObjectGoneError)", "suppress(ZeroDivisionError)"
            ),
        ),
        tests=("tests/unit/upgrade/test_reconciler.py", "tests/unit/upgrade/test_failed_end.py"),
    ),
    Planted(
        name="a gate waits for a zone although launches of an earlier target use up maxSurge",
        story="asks for one new node in each zone, as at the begin",
        edits=(
            edit(
                "leeward.upgrade.surge.orders.zones_in_reach",
                "not record.wanted and record.alive >= preflight.max_surge",
                "False",
            ),
        ),
        tests=("tests/unit/upgrade/surge/test_orders.py",),
    ),
    Planted(
        name="a canary that is watched is not announced",
        story="takes every hold with a canary for progress",
        edits=(
            edit(
                "leeward.upgrade.waits.hold_of",
                "permission.hold is Hold.CANARY and permission.until is None",
                "permission.hold is Hold.CANARY",
            ),
        ),
        tests=("tests/simulation/test_workflow_notifications.py",),
    ),
    Planted(
        name="repair ignores storms",
        story="replaces every node that is not Ready, also when all are",
        edits=(
            edit(
                f"{RECONCILE}.unhealthy_nodes.CircuitBreaker.reason_to_wait",
                "if share.unhealthy > most_unhealthy(rules, share.nodes):",
                "if False:",
            ),
        ),
        tests=("tests/unit/reconcile/test_unhealthy_nodes.py",),
    ),
    Planted(
        name="repair replaces the nodes of a dark zone",
        story="counts unhealthy nodes by group alone",
        edits=(
            edit(
                f"{RECONCILE}.unhealthy_nodes.CircuitBreaker.reason_to_wait",
                "if zone in self.zones and _all_unhealthy(self.zones[zone]):",
                "if False:",
            ),
        ),
        tests=("tests/unit/reconcile/test_unhealthy_nodes.py",),
    ),
    Planted(
        name="repair replaces a node at once",
        story="does not wait until the condition has lasted long enough",
        edits=(edit(f"{RECONCILE}.unhealthy_nodes._waiting", "if now < condition.due:", "if False:"),),
        tests=("tests/unit/reconcile/test_unhealthy_nodes.py",),
    ),
    Planted(
        name="repair acts in a paused cluster",
        story="asks the policy and not the pause switch",
        edits=(
            edit(
                f"{RECONCILE}.unhealthy_nodes._why_left",
                "if paused := state.policies.pauses.voluntary(group.name):",
                "if paused := '':",
            ),
        ),
        tests=("tests/unit/reconcile/test_unhealthy_nodes.py",),
    ),
    Planted(
        name="repair terminates at first sight",
        story="believes one look at a list from the API server's cache",
        edits=(edit(f"{RECONCILE}.repair._repair", "or _sure(node, verdict, state, ports)", "or True"),),
        tests=("tests/unit/reconcile/test_repair.py",),
    ),
    Planted(
        name="a forgotten taint counts without an end",
        story="takes every taint of another autoscaler for a node that is about to end",
        edits=(edit("leeward.model.node_owners.forgotten_taints", "if node.deleting or foreign(node):", "if True:"),),
        tests=("tests/unit/budgets/test_counts.py",),
    ),
    Planted(
        name="repair trusts the time of a condition",
        story="waits again whenever an agent renews it",
        edits=(
            edit(
                f"{RECONCILE}.unhealthy_nodes._since",
                "min(transition, first_seen(node, now).get(kind, transition))",
                "transition",
            ),
        ),
        tests=("tests/unit/reconcile/test_repair.py",),
    ),
    Planted(
        name="a first sight outlives the recovery",
        story="keeps the first moment of a condition that was healthy in between",
        edits=(
            edit(
                "leeward.model.node_condition.noted",
                "for key in sorted(set(lasting)))",
                "for key in sorted({*lasting, *known}))",
            ),
        ),
        tests=("tests/unit/reconcile/test_repair.py",),
    ),
    Planted(
        name="a first sight outlives an outage",
        story="counts the hours without a look at the node",
        edits=(edit("leeward.model.node_condition._text", "if now - last > LOST_AFTER:", "if False:"),),
        tests=("tests/unit/model/test_forgotten_taints.py",),
    ),
    Planted(
        name="repair runs maxUnhealthy up",
        story="counts percentages as disruption budgets do",
        edits=(
            edit(
                f"{RECONCILE}.unhealthy_nodes.most_unhealthy",
                "max(nodes * rules.max_unhealthy // 100, 1)",
                "-(-nodes * rules.max_unhealthy // 100)",
            ),
        ),
        tests=("tests/unit/reconcile/test_unhealthy_nodes.py",),
    ),
    Planted(
        name="repair counts unhealthy nodes over the whole cluster alone",
        story="lets most nodes of one zone go while the other zones are healthy",
        edits=(edit(f"{RECONCILE}.unhealthy_nodes.CircuitBreaker._scopes", "if zone in self.zones:", "if False:"),),
        tests=("tests/unit/reconcile/test_unhealthy_nodes.py",),
    ),
    Planted(
        name="repair counts unhealthy nodes by zone alone",
        story="repairs in every zone at once when nodes fail all over the cluster",
        edits=(
            edit(f"{RECONCILE}.unhealthy_nodes.CircuitBreaker._scopes", 'yield "the cluster", self.cluster', "return"),
        ),
        tests=("tests/unit/reconcile/test_unhealthy_nodes.py",),
    ),
)

OF_FINALIZERS = (
    Planted(
        name="a deleted Node is released before its drain",
        story="takes the finalizer off every Node that no policy asks it for",
        edits=(
            edit(
                "leeward.reconcile.finalizers.nodes_to_release",
                "if not (node.deleting and node.instance_id in state.claimed)",
                "if True",
            ),
        ),
        tests=("tests/unit/reconcile/test_finalizers.py",),
    ),
    Planted(
        name="the finalizer keeps a Node whose instance is gone",
        story="relies on the termination to take it off",
        edits=(edit("leeward.reconcile.finalizers.is_gone", "instance is None or instance.ended", "False"),),
        tests=("tests/unit/reconcile/test_finalizers.py",),
    ),
    Planted(
        name="the finalizer is put on Nodes without a policy for it",
        story="protects every Node of the cluster",
        edits=(
            edit(
                "leeward.reconcile.finalizers.is_wanted", "policy is not None and policy.finalizer and listed", "True"
            ),
        ),
        tests=("tests/unit/reconcile/test_finalizers.py",),
    ),
)

OF_STATE = (
    Planted(
        name="the tag of an instance comes before the group that lists it",
        story="takes the group that EC2 shows, which an attach changes some seconds later",
        edits=(
            edit(
                "leeward.cluster.joins.group_name",
                "listed or (instance.group if instance is not None else None)",
                "(instance.group if instance is not None else None) or listed",
            ),
        ),
        tests=("tests/unit/cluster", "tests/unit/interruption/test_world.py"),
    ),
    Planted(
        name="a stale Node ends the instance of a newer one",
        story="judges each Node by itself",
        edits=(
            edit(
                "leeward.cluster.state.ClusterState.is_superseded",
                "other is not None and other.uid != node.uid",
                "False",
            ),
        ),
        tests=("tests/unit/reconcile/test_repair.py",),
    ),
)

OF_SYNC = (
    Planted(
        name="sync overwrites another team's hook",
        story="puts the hook wherever none is marked",
        edits=(edit("leeward.sync.hooks.missing_hook", "return None if taken else wanted", "return wanted"),),
        tests=("tests/unit/sync/test_hooks.py",),
    ),
    Planted(
        name="sync puts its hook on groups of a paused cluster",
        story="asks the policy and not the pause switch",
        edits=(edit("leeward.sync.hooks.missing_hook", "if policies.pauses.everything(group.name):", "if False:"),),
        tests=("tests/unit/sync/test_hooks.py",),
    ),
    Planted(
        name="sync takes its hook off while an instance is drained",
        story="deletes the hook of a group that no policy selects, which completes what is outstanding",
        edits=(edit("leeward.sync.hooks.left_over_hook", "if ending or ", "if "),),
        tests=("tests/unit/sync/test_hooks.py",),
    ),
    Planted(
        name="sync writes over a subnet label that is there",
        story="labels every node at each turn",
        edits=(edit("leeward.sync.labels.unlabelled", "any(label not in node.labels for label in LABELS)", "True"),),
        tests=("tests/handlers", "tests/unit/sync"),
    ),
)

OF_NOTIFICATIONS = (
    Planted(
        name="a pod can mention a channel in Slack",
        story="puts names into a message as they are",
        edits=(
            edit(
                "leeward.notifications.messages._escaped",
                '{"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(letter, letter)',
                "letter",
            ),
        ),
        tests=("tests/unit/notifications/test_messages.py",),
    ),
    Planted(
        name="an incident is never resolved",
        story="gives each event an incident of its own",
        edits=(edit("leeward.notifications.messages._pagerduty", "{content.key}", "{content.id}"),),
        tests=("tests/unit/notifications/test_messages.py",),
    ),
    Planted(
        name="a notification has a new id at each delivery",
        story="makes the id from the time of the delivery",
        edits=(
            edit(
                "leeward.notifications.events._event",
                "lower()}{digest}",
                "lower()}{digest}{at.timestamp()}{id(record)}",
            ),
        ),
        tests=("tests/unit/notifications/test_events.py",),
    ),
    Planted(
        name="each change of a blocked node is a notification",
        story="compares sentences and not pods",
        edits=(
            edit(
                "leeward.notifications.events._progressed",
                "if _blocked_pods(after) - _blocked_pods(before):",
                "if after.blocked_by:",
            ),
        ),
        tests=("tests/unit/notifications/test_events.py",),
    ),
    Planted(
        name="a node that was returned to service is notified as terminated",
        story="takes every closed record for a finished termination",
        edits=(
            edit(
                "leeward.notifications.events._closed",
                "record.outcome is Outcome.RETURNED_TO_SERVICE and record.failure",
                "False",
            ),
        ),
        tests=("tests/unit/notifications/test_events.py",),
    ),
)
