"""Broken builds of what no seed reaches: adapters, the local stack, the command line, pure planning, and the parts of
the core that only rare worlds come to. Each names the tests that notice."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

CLAIMS = "leeward.adapters.aws.claims.DynamoClaims"
GROUPS = "leeward.adapters.aws.groups.AutoScalingGroups"
CHANGES = "leeward.adapters.aws.group_changes.AutoScalingGroupChanges"
UPGRADE = "leeward.upgrade"
REPAIR = "leeward.repair"

OF_ADAPTERS = (
    Planted(
        name="a cause joins a closed record in DynamoDB",
        story="adds the cause without the condition that the record is open",
        edits=(
            edit(
                f"{CLAIMS}._join",
                "#status = :open AND attribute_not_exists",
                "(#status = :open OR attribute_exists(pk)) AND attribute_not_exists",
            ),
        ),
        tests=("tests/contract/test_claims.py",),
    ),
    Planted(
        name="a record in DynamoDB is closed over a cause that joined",
        story="closes without the condition on the version",
        edits=(
            edit(
                f"{CLAIMS}.close",
                "#version = :version AND #status",
                "(#version = :version OR attribute_exists(pk)) AND #status",
            ),
        ),
        tests=("tests/contract/test_claims.py",),
    ),
    Planted(
        name="an upgrade's record is written over a newer one",
        story="writes without the condition on the version",
        edits=(
            edit(
                "leeward.adapters.aws.upgrades.DynamoUpgrades.write",
                "#version = :version AND #began",
                "(#version = :version OR attribute_exists(pk)) AND #began",
            ),
        ),
        tests=("tests/contract/test_upgrades.py",),
    ),
    Planted(
        name="a repeated terminate lowers the desired size twice",
        story="terminates with decrement without a look whether the instance is leaving",
        edits=(edit(f"{GROUPS}.terminate", "if held is None or (", "if False and ("),),
        tests=("tests/adapters/test_groups.py", "tests/contract/autoscaling/test_terminating.py"),
    ),
    Planted(
        name="a launch that EC2 refuses for capacity is an error",
        story="knows the codes of LaunchInstances only as failures",
        edits=(edit(f"{GROUPS}.launch", "LAUNCH_REFUSED | NO_CAPACITY:", "frozenset():"),),
        tests=("tests/adapters/test_groups.py",),
    ),
    Planted(
        name="MaxSize goes below the desired size",
        story="puts MaxSize back without a look at the desired size, which Auto Scaling then lowers",
        edits=(edit(f"{CHANGES}.put_back_maximum", 'raw["DesiredCapacity"] > maximum', "False"),),
        tests=("tests/adapters/test_group_changes.py",),
    ),
    Planted(
        name="raising MaxSize lowers a larger one",
        story="writes the wanted sizes as they are",
        edits=(edit(f"{CHANGES}.raise_to", "size > raw[name]", "size != raw[name]"),),
        tests=("tests/adapters/test_group_changes.py",),
    ),
    Planted(
        name="an eviction names the pod without its uid",
        story="evicts by name, so that a StatefulSet's next pod goes as well",
        edits=(edit("leeward.adapters.kubernetes.bodies.eviction", '{"preconditions": {"uid": pod.uid}}', "{}"),),
        tests=("tests/adapters/test_kubernetes_api.py",),
    ),
    Planted(
        name="only the first page of a list is read",
        story="never met a cluster with more objects than a page",
        edits=(edit("leeward.adapters.kubernetes.client.ClusterClient._pages", "if not rest:", "if True:"),),
        tests=("tests/adapters/test_kubernetes_client.py",),
    ),
    Planted(
        name="a node patch overwrites what others have written since",
        story="patches the list of taints without the version that was read",
        edits=(
            edit(
                "leeward.adapters.kubernetes.bodies.node_patch", '{"resourceVersion": current.resource_version}', "{}"
            ),
        ),
        tests=("tests/adapters/test_kubernetes_api.py",),
    ),
)

OF_THE_LOCAL_STACK = (
    Planted(
        name="the local API server evicts past a PodDisruptionBudget",
        story="deletes the pod and looks at the budget afterwards",
        edits=(edit("local.cluster.eviction._allows", 'status["disruptionsAllowed"] > 0', "True"),),
        tests=("tests/contract/cluster/test_evictions.py",),
    ),
    Planted(
        name="the local API server ignores the uid of a precondition",
        story="deletes whatever has the name",
        edits=(edit("local.cluster.world.World.check_preconditions", 'options.uid != metadata["uid"]', "False"),),
        tests=("tests/contract/cluster/test_evictions.py", "tests/contract/test_kubernetes.py"),
    ),
    Planted(
        name="the local API server evicts a pod under several budgets",
        story="asks the first budget alone",
        edits=(edit("local.cluster.eviction._guard", "if len(matching) > 1:", "if False:"),),
        tests=("tests/contract/cluster/test_evictions.py", "tests/contract/test_kubernetes.py"),
    ),
)

OF_UPGRADE_EDGES = (
    Planted(
        name="an upgrade waits without an end for nodes that others terminate",
        story="polls until the node is gone",
        edits=(edit(f"{UPGRADE}.drains._stalled", "if not stands:", "if True:"),),
        tests=("tests/unit/upgrade/test_stalled.py",),
    ),
    Planted(
        name="an abort waits without an end for nodes that do not finish",
        story="polls until the node is gone",
        edits=(edit(f"{UPGRADE}.settling.nodes_finish", "if stands:", "if False:"),),
        tests=("tests/unit/upgrade/test_stalled.py",),
    ),
    Planted(
        name="an upgrade waits without an end for a budget that another group holds",
        story="takes a budget of 0 for a closed window",
        edits=(edit(f"{UPGRADE}.drains._budget_is_spent", "if not holders:", "if True:"),),
        tests=("tests/unit/upgrade/test_stalled.py",),
    ),
    Planted(
        name="an upgrade waits without an end for a raised desired size",
        story="polls until the group has launched",
        edits=(edit(f"{UPGRADE}.settling._unpaid", "if not stands:", "if True:"),),
        tests=("tests/unit/upgrade/test_stalled.py",),
    ),
    Planted(
        name="an upgrade watches an update of EKS without an end",
        story="polls until EKS says that it has ended",
        edits=(edit(f"{UPGRADE}.managed._rolls", "if stands:", "if False:"),),
        tests=("tests/unit/upgrade/test_managed.py",),
    ),
    Planted(
        name="an upgrade terminates instances in Standby",
        story="takes whatever is not leaving for a member",
        edits=(edit(f"{UPGRADE}.members._absence", 'lifecycle in {"Standby", "EnteringStandby"}', "False"),),
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
        edits=(edit(f"{UPGRADE}.books._failed", "[-MOST_REASONS:]", ""),),
        tests=("tests/contract/test_large_upgrades.py",),
    ),
    Planted(
        name="a launch is forgiven whatever Auto Scaling refuses",
        story="takes every permanent error of a terminate for below MinSize",
        edits=(edit("leeward.termination.steps._terminate", "owed and _at_minimum(record, ports)", "owed"),),
        tests=("tests/state_machines/test_ledger_walks.py",),
    ),
    Planted(
        name="new nodes of an upgrade are booked in the wrong zone",
        story="takes the group's first zone for each launch",
        edits=(
            edit(
                f"{UPGRADE}.ordering.fulfil",
                "dict.fromkeys(answer.launched, order.zone)",
                'dict.fromkeys(answer.launched, "elsewhere")',
            ),
        ),
        tests=("tests/unit/upgrade/test_ordering.py",),
    ),
    Planted(
        name="a node that a killed step has chosen is never drained",
        story="believes that what is written down has been done",
        edits=(
            edit(
                f"{UPGRADE}.rolling.take_turn",
                "unclaimed = [old for old in books.unclaimed if old in found.under_way]",
                "unclaimed = []",
            ),
        ),
        tests=("tests/unit/upgrade/test_rolling.py",),
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
                f"{UPGRADE}.ending.undo",
                "ports.group_changes.point_at(scene.group, record.previous.template)",
                "pass",
            ),
        ),
        tests=("tests/unit/upgrade/test_endings.py",),
    ),
)

OF_REPAIR = (
    Planted(
        name="repair ignores storms",
        story="replaces every node that is not Ready, also when all are",
        edits=(edit(f"{REPAIR}.storms.Storms.why_not", "if ill > most:", "if False:"),),
        tests=("tests/unit/repair/test_verdicts.py",),
    ),
    Planted(
        name="repair replaces the nodes of a dark zone",
        story="counts unhealthy nodes by group alone",
        edits=(edit(f"{REPAIR}.storms.Storms.why_not", "if zone in self.dark:", "if False:"),),
        tests=("tests/unit/repair/test_verdicts.py",),
    ),
    Planted(
        name="repair replaces a node at once",
        story="does not wait until the condition has lasted long enough",
        edits=(edit(f"{REPAIR}.verdicts._timed", "if checkup.now < found.due:", "if False:"),),
        tests=("tests/unit/repair/test_verdicts.py",),
    ),
    Planted(
        name="repair acts in a paused cluster",
        story="asks the policy and not the pause switch",
        edits=(edit(f"{REPAIR}.verdicts._why_left", "if checkup.policies.settings.paused:", "if False:"),),
        tests=("tests/unit/repair/test_verdicts.py",),
    ),
    Planted(
        name="repair terminates at first sight",
        story="believes one look at a list from the API server's cache",
        edits=(edit(f"{REPAIR}.scan._replace", "or _sure(node, checkup.impaired, sight, ports)", "or True"),),
        tests=("tests/unit/termination/test_repair_scan.py",),
    ),
    Planted(
        name="repair rounds maxUnhealthy down",
        story="divides whole numbers",
        edits=(
            edit(
                f"{REPAIR}.storms.most_unhealthy",
                "ceil(nodes * rules.max_unhealthy / 100)",
                "nodes * rules.max_unhealthy // 100",
            ),
        ),
        tests=("tests/unit/repair/test_verdicts.py",),
    ),
)

OF_FINALIZERS = (
    Planted(
        name="a deleted Node is released before its drain",
        story="takes the finalizer off every Node that no policy asks it for",
        edits=(
            edit(
                "leeward.finalizer.choosing.to_release",
                "if not (node.deleting and node.instance_id in sight.records)",
                "if True",
            ),
        ),
        tests=("tests/unit/termination/test_finalizer.py",),
    ),
    Planted(
        name="the finalizer keeps a Node whose instance is gone",
        story="relies on the termination to take it off",
        edits=(edit("leeward.finalizer.choosing.gone", "instance is None or instance.ended", "False"),),
        tests=("tests/unit/termination/test_finalizer.py",),
    ),
    Planted(
        name="the finalizer is put on Nodes without a policy for it",
        story="protects every Node of the cluster",
        edits=(edit("leeward.finalizer.choosing.wanted", "policy is not None and policy.finalizer", "True"),),
        tests=("tests/unit/termination/test_finalizer.py",),
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
        edits=(edit("leeward.sync.hooks.missing_hook", "if policies.settings.paused:", "if False:"),),
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
        name="a notification has a new id at each delivery",
        story="makes the id from the time of the delivery",
        edits=(
            edit("leeward.telling.tidings._tiding", "{word}{digest}", "{word}{digest}{at.timestamp()}{id(record)}"),
        ),
        tests=("tests/unit/telling/test_tidings.py",),
    ),
    Planted(
        name="each change of a blocked node is a notification",
        story="compares sentences and not pods",
        edits=(
            edit(
                "leeward.telling.tidings._turns",
                "if _blocked_pods(after) - _blocked_pods(before):",
                "if after.blocked_by:",
            ),
        ),
        tests=("tests/unit/telling/test_tidings.py",),
    ),
    Planted(
        name="a node that was given back is notified as terminated",
        story="takes every closed record for a finished termination",
        edits=(
            edit("leeward.telling.tidings._closed", "record.outcome is Outcome.GIVEN_BACK and record.failure", "False"),
        ),
        tests=("tests/unit/telling/test_tidings.py",),
    ),
)

OF_PLANNING = (
    Planted(
        name="disruption shrinks a group below its MinSize",
        story="looks at budgets alone",
        edits=(edit("leeward.disruption.spending.slack", "group.desired - group.minimum", "group.desired"),),
        tests=("tests/unit/disruption",),
    ),
    Planted(
        name="consolidation ignores minimumSavings",
        story="takes every cent",
        edits=(edit("leeward.disruption.savings.why_not_worth", "if savings < least:", "if False:"),),
        tests=("tests/unit/disruption/test_consolidation.py", "tests/unit/disruption/test_methods.py"),
    ),
    Planted(
        name="budgets round a share down",
        story="divides whole numbers, so that 10 % of nine nodes is none",
        edits=(
            edit("leeward.disruption.budgets.limit", "-(-total * budget.nodes // 100)", "total * budget.nodes // 100"),
        ),
        tests=("tests/unit/disruption/test_budgets.py",),
    ),
    Planted(
        name="a budget's window is always open",
        story="reads the schedule and not the time",
        edits=(edit("leeward.disruption.budgets.allowance", "or is_active(budget.window, now)", "or True"),),
        tests=("tests/unit/disruption/test_budgets.py",),
    ),
    Planted(
        name="pods are packed regardless of topology spread",
        story="takes DoNotSchedule for a preference",
        edits=(edit("leeward.scheduling.rules.Spread.narrow", "return ", "return nodes or "),),
        tests=("tests/unit/scheduling/test_spread.py",),
    ),
    Planted(
        name="pods are packed regardless of anti-affinity",
        story="takes a required term for a preferred one",
        edits=(edit("leeward.scheduling.rules.Away.narrow", "nodes &= ~term.nodes()", "pass"),),
        tests=("tests/unit/scheduling/test_pod_affinity.py",),
    ),
)

OF_THE_COMMAND_LINE = (
    Planted(
        name="leeward drain exits 0 although pods refuse",
        story="prints what refuses and reports success",
        edits=(edit("leeward.cli.drain._run_offline", "return ", "return 0 and "),),
        tests=("tests/cli/test_drain.py",),
    ),
)

PLANTED: tuple[Planted, ...] = (
    *OF_ADAPTERS,
    *OF_THE_LOCAL_STACK,
    *OF_UPGRADE_EDGES,
    *OF_REPAIR,
    *OF_FINALIZERS,
    *OF_SYNC,
    *OF_NOTIFICATIONS,
    *OF_PLANNING,
    *OF_THE_COMMAND_LINE,
)
