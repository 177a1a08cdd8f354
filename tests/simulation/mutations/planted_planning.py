"""Planted builds: budgets, consolidation and scheduling."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

OF_PLANNING = (
    Planted(
        name="a replacement is launched where its pods may not run",
        story="chooses its zone by cores and addresses, and leaves the pods to the scheduler",
        edits=(edit("leeward.termination.replacing._compare_zones", "if tied:", "if False:"),),
        tests=("tests/simulation/test_replacement_zones.py",),
    ),
    Planted(
        name="a replacement asks the rules of its own pods alone",
        story="forgets that kube-scheduler honours the anti-affinity of the pods that are there",
        edits=(
            edit("leeward.termination.replacing._compare_zones", "pod.tied_to_zones or others", "pod.tied_to_zones"),
        ),
        tests=("tests/state_machines/test_replacement_zones.py",),
    ),
    Planted(
        name="a replacement counts on pods of its node to come along",
        story="takes the zone of the pod that one has to run beside, which leaves too and may land anywhere",
        edits=(
            edit(
                "leeward.placement.zone_fit.zone_refusals", "if any(pod.needs.near", "if False and any(pod.needs.near"
            ),
        ),
        tests=("tests/state_machines/test_replacement_zones.py",),
    ),
    Planted(
        name="a node is empty since the annotation says so",
        story="trusts what was written five minutes ago, whatever has run since",
        edits=(
            edit(
                "leeward.disruption.methods.emptiness.empty_since",
                "return min(max(noted, node.created, *runs_on(snapshot, node)), snapshot.now)",
                "return noted",
            ),
        ),
        tests=("tests/unit/disruption/test_methods.py",),
    ),
    Planted(
        name="a replacement leaves the balancing of zones to AZRebalance",
        story="thinks that a group which balances its zones by itself need not be helped",
        edits=(edit("leeward.placement.zone_choice.even_zones", "if AZ_REBALANCE in group.suspended:", "if True:"),),
        tests=("tests/state_machines/test_replacement_zones.py",),
    ),
    Planted(
        name="a pod with resource claims fits on any node",
        story="asks for cpu, memory and what else a container requests",
        edits=(edit("leeward.model.pod_limits.not_judged", 'if spec.get("resourceClaims"):', "if False:"),),
        tests=("tests/unit/scheduling/test_unjudged_pods.py",),
    ),
    Planted(
        name="nodes that report less memory than was estimated prove nothing",
        story="trusts the list of instance types, whatever the nodes of the type say",
        edits=(
            edit(
                "leeward.node_template.observed.Observed.amounts",
                "min(value, allocatable.get(name, value))",
                "allocatable.get(name, value)",
            ),
        ),
        tests=("tests/unit/node_template/test_observed.py",),
    ),
    Planted(
        name="a daemon whose labels are unknown on a new node takes no room there",
        story="leaves room for the daemons that the known labels of a new node admit",
        edits=(
            edit("leeward.scheduling.world._runs_on_some", "if not node.variants and not node.open_labels", "if True"),
        ),
        tests=("tests/unit/scheduling/test_packing.py",),
    ),
    Planted(
        name="a pod fits on a group if one of its types suits it",
        story="asks whether some launch would do, where any may come",
        edits=(edit("leeward.scheduling.node_sets._matches", "return all(", "return any("),),
        tests=("tests/unit/snapshot/test_launchable.py",),
    ),
    Planted(
        name="a plan moves pods onto whatever kube-scheduler allows",
        story="seeks the cheapest group, of which operating system it may be",
        edits=(
            edit("leeward.snapshot.gather.with_platforms", "if pod.stays or not (system or architecture)", "if True"),
        ),
        tests=("tests/unit/snapshot/test_platform.py",),
    ),
    Planted(
        name="a pod that is made smaller frees what its node still holds",
        story="reads the requests where their owner writes them",
        edits=(edit("leeward.scheduling.pods._held", "if status is None:", "if True:"),),
        tests=("tests/unit/scheduling/test_unjudged_pods.py",),
    ),
    Planted(
        name="groups of a disruption run wait for the upgrade of any of them",
        story="restores all of them together or none",
        edits=(
            edit(
                "leeward.disruption.completion.restore_groups",
                "if shifted else tuple(name for name in record.suspended if name in upgraded)",
                "if shifted or upgraded else ()",
            ),
        ),
        tests=("tests/unit/disruption/test_controller.py",),
    ),
    Planted(
        name="what a raised desired size brings is forgotten",
        story="raises the size where LaunchInstances is refused and never looks for the new member",
        edits=(
            edit(
                "leeward.disruption.replacements.adopt",
                "waiting = record.outstanding()",
                "waiting = dict[str, str]()",
            ),
        ),
        tests=("tests/simulation/test_disruption_growth.py",),
    ),
    Planted(
        name="disruption shrinks a group below its MinSize",
        story="looks at budgets alone",
        edits=(edit("leeward.budgets.usage.slack", "group.desired - group.minimum", "group.desired"),),
        tests=("tests/unit/disruption",),
    ),
    Planted(
        name="a disruption run charges for a launch that others have undone",
        story="takes every launch without a node that goes for one to be offset",
        edits=(edit("leeward.disruption.completion.roll_back", "None if new in without_offset else ", ""),),
        tests=("tests/unit/disruption/test_rollback.py",),
    ),
    Planted(
        name="a decrement for another launch undoes that of a disruption run",
        story="does not ask what the decrement was for",
        edits=(
            edit(
                "leeward.termination.ledger_settlement.undone",
                "if not offsets_another(terminations.get(new), new)",
                "if terminations is not None",
            ),
        ),
        tests=("tests/unit/disruption/test_rollback.py",),
    ),
    Planted(
        name="nodes of a disruption run serve again before one is claimed for a launch",
        story="returns nodes to service first, because that is easy",
        edits=(
            edit(
                "leeward.disruption.completion.roll_back",
                "surplus = record.surplus()",
                "return_to_service(record, record.staying, ports)\n    surplus = record.surplus()",
            ),
        ),
        tests=("tests/unit/disruption/test_rollback.py",),
    ),
    Planted(
        name="nodes of dropped commands keep the taint",
        story="leaves it to the reconciler, which knows them as the run's",
        edits=(
            edit(
                "leeward.disruption.terminations.return_to_service",
                "untaint_unclaimed(node, kubernetes, ports)",
                "pass",
            ),
        ),
        tests=("tests/unit/disruption/test_rollback.py",),
    ),
    Planted(
        name="a disruption run launches again when it is repeated",
        story="makes the client token from the time",
        edits=(
            edit(
                "leeward.disruption.replacements._fulfilled",
                "token = launch_token(record, key, subnet)",
                "token = f'{launch_token(record, key, subnet)}-{ports.clock.now():%H%M%S}'",
            ),
        ),
        tests=("tests/unit/disruption/test_launching.py",),
    ),
    Planted(
        name="consolidation ignores minimumSavings",
        story="takes every cent",
        edits=(edit("leeward.disruption.savings.reason_not_worth", "if savings < least:", "if False:"),),
        tests=("tests/unit/disruption/test_consolidation.py", "tests/unit/disruption/test_methods.py"),
    ),
    Planted(
        name="nodes of one launch expire together",
        story="reads the spread of expireAfter and gives every node the middle of it",
        edits=(edit("leeward.disruption.candidates.lifetime", "_position(node.instance_id or node.name)", "0"),),
        tests=("tests/unit/disruption/test_lifetime.py",),
    ),
    Planted(
        name="Balanced takes what WhenEmptyOrUnderutilized takes",
        story="computes the score, shows it and does not compare it",
        edits=(edit("leeward.disruption.balanced.Score.enough", "self.value >= LEAST_SCORE - _NOISE", "True"),),
        tests=("tests/unit/disruption/test_balanced.py",),
    ),
    Planted(
        name="the score of a command grows with the size of the cluster",
        story="compares the savings with the price of the command's own nodes",
        edits=(
            edit(
                "leeward.disruption.balanced._of_policy",
                "own / totals.price if totals.price",
                "saved if totals.price",
            ),
        ),
        tests=("tests/unit/disruption/test_balanced.py",),
    ),
    Planted(
        name="budgets run a share down",
        story="divides whole numbers, so that 10 % of nine nodes is none",
        edits=(
            edit(
                "leeward.budgets.disruption_budgets.limit",
                "-(-total * budget.nodes // 100)",
                "total * budget.nodes // 100",
            ),
        ),
        tests=("tests/unit/budgets/test_disruption_budgets.py",),
    ),
    Planted(
        name="a budget's window is always open",
        story="reads the schedule and not the time",
        edits=(edit("leeward.budgets.disruption_budgets.allowance", "or is_active(budget.window, now)", "or True"),),
        tests=("tests/unit/budgets/test_disruption_budgets.py",),
    ),
    Planted(
        name="pods are packed regardless of topology spread",
        story="takes DoNotSchedule for a preference",
        edits=(edit("leeward.scheduling.predicates.Spread.narrow", "return ", "return nodes or "),),
        tests=("tests/unit/scheduling/test_spread.py",),
    ),
    Planted(
        name="pods are packed regardless of anti-affinity",
        story="takes a required term for a preferred one",
        edits=(edit("leeward.scheduling.predicates.Away.narrow", "nodes &= ~term.nodes()", "pass"),),
        tests=("tests/unit/scheduling/test_pod_affinity.py",),
    ),
    Planted(
        name="a draining node is no topology domain",
        story="takes the node out of the fleet with its pods, although its Node object is still there",
        edits=(
            edit(
                "leeward.scheduling.topology_counts.Tally._counted",
                "fleet.present | fleet.draining if self._draining else fleet.present",
                "fleet.present",
            ),
        ),
        tests=("tests/unit/scheduling/test_spread_during_a_drain.py",),
    ),
    Planted(
        name="free capacity counts on selected nodes alone",
        story="asks the policies where kube-scheduler asks none",
        edits=(
            edit(
                "leeward.snapshot.cluster.specs_by_free_capacity",
                "(why := why_closed(node))",
                '(why := why_closed(node) or ("" if snapshot.group_of(node) and'
                ' snapshot.policy_of(snapshot.group_of(node)) else "node(s) were not selected"))',
            ),
        ),
        tests=("tests/unit/disruption/test_consolidation.py",),
    ),
    Planted(
        name="a replacement is placed in a closed zone",
        story="takes the zone with the fewest cores, which is the one that has just failed",
        edits=(
            edit(
                "leeward.placement.zones.zone_order",
                "(zone in closed, allocated.get(zone, 0))",
                "allocated.get(zone, 0)",
            ),
        ),
        tests=("tests/unit/placement/test_zones.py",),
    ),
    Planted(
        name="a policy without a disruption section has the section's defaults",
        story="takes what is absent for what is empty",
        edits=(edit("leeward.policy.disruption_section.disruption", 'if not spec.has("disruption"):', "if False:"),),
        tests=("tests/unit/policy/test_parse.py",),
    ),
    Planted(
        name="a policy without a repair section repairs",
        story="takes what is absent for what is empty",
        edits=(edit("leeward.policy.sections.repair", 'if not spec.has("repair"):', "if False:"),),
        tests=("tests/unit/policy/test_parse.py",),
    ),
    Planted(
        name="a node that its policy does not consolidate is called unconsolidatable",
        story="writes an Event for whatever has a verdict",
        edits=(
            edit(
                "leeward.disruption.blocked_nodes.blocked_event",
                "consolidation.why_off(snapshot, policy) or",
                "",
            ),
        ),
        tests=("tests/unit/disruption/test_blocked_events.py",),
    ),
    Planted(
        name="every zone is open to replacements",
        story="looks at the nodes of a zone and not whether they take pods",
        edits=(edit("leeward.placement.scene.closed_zones", "if not open_to_pods", "if False"),),
        tests=("tests/unit/placement/test_zones.py",),
    ),
    Planted(
        name="a question mark stays in a cron line",
        story="takes the syntax of EventBridge and Quartz for an error",
        edits=(edit("leeward.policy.schedule.parse_schedule", '"*" if field == "?" else ', ""),),
        tests=("tests/unit/policy/test_schedule.py",),
    ),
    Planted(
        name="the disruption window of a pod is always open",
        story="reads the schedule and not the time",
        edits=(edit("leeward.disruption.do_not_disrupt.is_window_open", "is_active(window, now)", "True"),),
        tests=("tests/unit/disruption/test_pod_window.py",),
    ),
    Planted(
        name="a disruption window that cannot be read is none",
        story="takes a mistake of the pod's author for no limit",
        edits=(
            edit("leeward.disruption.do_not_disrupt.is_window_open", "window is not None and", "window is None or"),
        ),
        tests=("tests/unit/disruption/test_pod_window.py",),
    ),
    Planted(
        name="safe-to-evict is ignored by drains",
        story="asks the policy alone what may be deleted",
        edits=(edit("leeward.termination.drain_plan._refused", "(options.voluntary and pod.safe_to_evict)", "False"),),
        tests=("tests/unit/termination/test_drain_plan.py",),
    ),
    Planted(
        name="safe-to-evict false does not keep a node from disruption",
        story="knows do-not-disrupt and no annotation of Cluster Autoscaler",
        edits=(edit("leeward.disruption.do_not_disrupt.pod_opt_outs", "safe in NOT_SAFE", "False"),),
        tests=("tests/unit/disruption/test_candidates.py",),
    ),
)
