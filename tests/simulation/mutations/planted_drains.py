"""Planted builds: drains by force, second replicas, launches that are written off, and what functions log."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

TERMINATION = "leeward.termination"

OF_DRAINS = (
    Planted(
        name="a step that was overtaken writes its launch over the other one",
        story="takes the record for what it was when the step began",
        edits=(edit(f"{TERMINATION}.replacing._overtook", "bool(other.launched) and", "False and"),),
        tests=("tests/state_machines/test_replacements.py",),
    ),
    Planted(
        name="an upgrade takes a node that drains back into load balancers",
        story="removes the label of its own whatever else happens to the node",
        edits=(
            edit("leeward.model.node.uncordoned", "if well_known.EXCLUDED_FOR in ours and node.tainted:", "if False:"),
        ),
        tests=("tests/unit/test_node_cordons.py",),
    ),
    Planted(
        name="a hook that was put during the drain waits until the hooks are read again",
        story="answers the hooks that the group had when it was read last",
        edits=(
            edit(
                "leeward.termination.hook_completion._answer",
                " or (situation.held and situation.has_new_hook)",
                "",
            ),
        ),
        tests=("tests/state_machines/test_answers.py",),
    ),
    Planted(
        name="an instance of a Capacity Block is replaced in the block",
        story="launches ahead whatever is taken",
        edits=(
            edit(
                "leeward.termination.decisions._why_by_the_group",
                "if record.has(CauseKind.CAPACITY_BLOCK) else None",
                "if False else None",
            ),
        ),
        tests=("tests/unit/reconcile/test_capacity_blocks.py",),
    ),
    Planted(
        name="drain.settle auto ends a node that node ports reach at once",  # the rule SETTLED fails the worlds with it
        story="looks at the group's own load balancers alone",
        edits=(
            edit(
                "leeward.termination.settling.settle_time",
                "any(service.on_nodes for service in known)",
                "False",
            ),
        ),
        tests=("tests/unit/termination/test_settling.py",),
    ),
    Planted(
        name="an instance whose Node was deleted as it drained ends at once",  # the rule SETTLED fails a world
        story="takes a deleted Node for an empty one",
        edits=(edit(f"{TERMINATION}.situation.last_known", "if not name or", "if True or"),),
        tests=("tests/state_machines/test_drains.py",),
    ),
    Planted(
        name="a step decides by the record of before a pause",
        story="carries it to every step that follows",
        edits=(edit(f"{TERMINATION}.run.Run._carried", "self.pause > 0 or ", ""),),
        tests=("tests/unit/termination/test_carried_record.py",),
    ),
    Planted(
        name="a step decides by a record of minutes ago",
        story="trusts what an execution that was held up has read",
        edits=(edit(f"{TERMINATION}.run._carried", "> CARRIED_FOR", "< timedelta()"),),
        tests=("tests/unit/termination/test_carried_record.py",),
    ),
    Planted(
        name="the empty node of a Capacity Block is terminated at once",
        story="settles it as any other node",
        edits=(
            edit(
                "leeward.termination.deadlines.settle_seconds",
                "all(cause.kind is CauseKind.CAPACITY_BLOCK for cause in record.causes)",
                "False",
            ),
        ),
        tests=("tests/unit/reconcile/test_capacity_blocks.py",),
    ),
    Planted(
        name="a forged warning drains the instances of an ordinary reservation",
        story="believes whatever a message says of a reservation",
        edits=(edit("leeward.interruption.lookup.name_instances", "if confirmed:", "if False:"),),
        tests=("tests/unit/reconcile/test_capacity_blocks.py",),
    ),
    Planted(
        name="a node that is drained alone is uncordoned",
        story="removes the taint as on every return to service",
        edits=(
            edit(
                f"{TERMINATION}.node_removal._keep",
                "node = kubernetes.annotate(node, {well_known.CORDONED_BY_DRAIN: None})",
                "pass",
            ),
        ),
        tests=("tests/state_machines/test_kept_nodes.py",),
    ),
    Planted(
        name="one drain with --keep keeps the instance from every other cause",
        story="reads the flag of the first cause",
        edits=(edit("leeward.model.termination.TerminationRecord.keeps", "all(", "any("),),
        tests=("tests/state_machines/test_kept_nodes.py",),
    ),
    Planted(
        name="a forced drain that moves nothing is looked at every two seconds",
        story="polls until the pods that are deleted are gone",
        edits=(edit(f"{TERMINATION}.drain._unfinished", "2 if progress.moved else None", "2"),),
        tests=("tests/state_machines/test_partial_failure.py",),
    ),
    Planted(
        name="a forced drain waits for pods that the policy keeps",
        story="takes force for the end of every obstacle",
        edits=(edit(f"{TERMINATION}.drain._unfinished", "policy.force and bool(plan.evict)", "policy.force"),),
        tests=("tests/state_machines/test_partial_failure.py",),
    ),
    Planted(
        name="a second replica stays until the node is empty, whatever ended its pod",
        story="puts back what an eviction of the step itself has made superfluous",
        edits=(
            edit(
                f"{TERMINATION}.replica_surge.ReplicaSurge.lower_unneeded", "self._surges.keys() - owners", "set[str]()"
            ),
        ),
        tests=("tests/state_machines/test_leaving.py",),
    ),
    Planted(
        name="of two steps of one termination the later one forgets the other's second replica",
        story="writes the second replicas that it knows of as one value",
        edits=(
            edit(
                "leeward.adapters.aws.claims.DynamoClaims.surge",
                'change.set_in("surges", deployment, scaled)',
                'change.set("surges", {deployment: scaled})',
            ),
        ),
        tests=("tests/contract/test_claims.py",),
    ),
    Planted(
        name="the reconciler counts on the next step of a hook of two minutes",
        story="leaves the heartbeats of an execution that runs to its steps until half of the time-out has passed",
        edits=(edit("leeward.reconcile.hooks._keep_waiting", ", ahead, TWO_PASSES)", ", ahead)"),),
        tests=("tests/unit/reconcile/test_reconciler.py",),
    ),
    Planted(
        name="a launch is written off while the group still launches the member that can offset it",
        story="asks the members that are there now",
        edits=(
            edit(
                f"{TERMINATION}.ledger_settlement._elsewhere",
                "return None if waits else",
                "return",
            ),
        ),
        tests=("tests/state_machines/test_ledger_walks.py",),
    ),
    Planted(
        name="a launch is written off when the last member that was asked to offset it ends",
        story="asks each member of the group once",
        edits=(
            edit(
                f"{TERMINATION}.ledger_settlement._elsewhere",
                "_asked_before(members, ports.claims)",
                "NoOffset.WRITTEN_OFF",
            ),
        ),
        tests=("tests/unit/termination/test_asked_before.py",),
    ),
    Planted(
        name="a member is asked again by the entry that it has settled",
        story="takes the name of a launch for the name of each request of its offset",
        edits=(
            edit(
                f"{TERMINATION}.ledger_settlement._entries",
                "return {surge: settlement, capacity_ledger.next_round(record, surge): settlement}",
                "return {surge: settlement}",
            ),
        ),
        tests=("tests/state_machines/test_ledger_rounds.py",),
    ),
    Planted(
        name="maintenance of an instance that has ended waits for a budget",
        story="counts every record of maintenance against the budgets",
        edits=(edit("leeward.reconcile.executions.budget_left", " or situation.ended", ""),),
        tests=("tests/unit/reconcile/test_reconciler.py",),
    ),
    Planted(
        name="doctor passes over terminate hooks that outlast no failed reconciliation",
        story="thinks of launch hooks alone",
        edits=(
            edit(
                "leeward.doctor.checks.hooks._short_hooks",
                "if ours and hook.heartbeat_timeout",
                "if ours and hook.transition == LAUNCHING and hook.heartbeat_timeout",
            ),
        ),
        tests=("tests/unit/doctor/test_groups.py",),
    ),
    Planted(
        name="a decrement from before the launch offsets it",
        story="looks for any decrement by which the group parted with the instance",
        edits=(edit("leeward.termination.capacity_ledger.ending", "own.at >= launched", "True"),),
        tests=("tests/unit/termination/test_ledger_settlement.py",),
    ),
    Planted(
        name="of a Health event the later date counts",
        story="knows that AWS moves maintenance to later dates",
        edits=(
            edit(
                "leeward.model.termination.maintenance",
                "if cause.at > announced or (cause.at == announced and cause.deadline < date):",
                "if cause.deadline > date:",
            ),
        ),
        tests=("tests/unit/termination/test_deadlines.py",),
    ),
    Planted(
        name="the end of an instance that came back from its warm pool is awaited",
        story="waits until EC2 says that the instance ends, which it did unnoticed",
        edits=(edit("leeward.termination.hook_completion._came_back", "launched > begun", "False"),),
        tests=("tests/state_machines/test_warm_pools.py",),
    ),
    Planted(
        name="nodes in Standby make budgets larger",
        story="counts every node of the policy's groups",
        edits=(
            edit(
                "leeward.budgets.usage._passing",
                "role_of(lifecycle) in NOT_IN_SERVICE",
                "role_of(lifecycle) in NOT_IN_SERVICE - {LifecycleRole.STANDBY}",
            ),
        ),
        tests=("tests/unit/budgets/test_counts.py",),
    ),
    Planted(
        name="a metric point of zero is sent",
        story="counts what has happened, also when nothing has",
        edits=(edit("leeward.telemetry.Telemetry.count", "if value", "if True"),),
        tests=("tests/unit/test_telemetry.py",),
    ),
)
