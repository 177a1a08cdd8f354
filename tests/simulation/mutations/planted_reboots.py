"""Planted builds: conditions of the node monitoring agent, and reboots."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

RECONCILE = "leeward.reconcile"
STEP = "leeward.termination.reboot"
WALKS = ("tests/state_machines/test_reboots.py",)
DOUBTS = ("tests/state_machines/test_reboots_in_doubt.py",)

OF_REBOOTS = (
    Planted(
        name="a broken driver on all nodes holds no circuit breaker",
        story="counts NotReady nodes alone",
        edits=(
            edit(
                f"{RECONCILE}.unhealthy_nodes.is_unhealthy",
                "doubtful or any(rule_for(condition, rules) for condition in node.monitored)",
                "doubtful",
            ),
        ),
        tests=("tests/unit/reconcile/test_unhealthy_nodes.py",),
    ),
    Planted(
        name="a condition that was over at the fresh read ends the node",
        story="believes the list from the cache",
        edits=(edit(f"{RECONCILE}.repair._sure", "return _lasts(verdict.condition, fresh, state)", "return True"),),
        tests=("tests/unit/reconcile/test_repair.py",),
    ),
    Planted(
        name="a node is rebooted again however often it was today",
        story="lets every repair reboot, however often that was tried",
        edits=(
            edit(
                f"{RECONCILE}.repair._reboot", "reboots_of_a_day(record.reboots.values(), now) >= MOST_A_DAY", "False"
            ),
        ),
        tests=("tests/unit/reconcile/test_repair.py",),
    ),
    Planted(
        name="the step reboots a third time within a day",
        story="trusts the claim to have counted",
        edits=(
            edit(
                f"{STEP}._reason_not_to_reboot",
                "reboots_of_a_day(record.reboots.values(), now) >= MOST_A_DAY",
                "False",
            ),
        ),
        tests=WALKS,
    ),
    Planted(
        name="a killed step reboots again",
        story="records the reboot after the request",
        edits=(
            edit(f"{STEP}._with_node", "record.rebooting is not None", "node.boot != record.boot"),
            edit(f"{STEP}._reason_not_to_reboot", "if node.boot in record.reboots:", "if False:"),
            edit(
                f"{STEP}._request",
                "if not ports.claims.note_reboot(record.instance, node.boot, now):",
                "if not (ports.claims.note_reboot(record.instance, node.boot, now) or True):",
            ),
        ),
        tests=WALKS,
    ),
    Planted(
        name="a node is rebooted in an outage",
        story="asks the circuit breaker when the node is claimed, and not after its drain",
        edits=(edit(f"{STEP}._request", "held := over or _circuit_breaker(record, node, ports)", "held := over"),),
        tests=DOUBTS,
    ),
    Planted(
        name="a pod that came after the drain is on the node when it reboots",
        story="trusts the drain",
        edits=(edit(f"{STEP}._request", "if not plan.drained:", "if False:"),),
        tests=WALKS,
    ),
    Planted(
        name="a node returns to service before it is Ready",
        story="takes the new boot id for the end",
        edits=(edit(f"{STEP}.not_back", "if not node.ready:", "if False:"),),
        tests=WALKS,
    ),
    Planted(
        name="a node returns to service with the condition that it was rebooted for",
        story="takes Ready for well",
        edits=(edit(f"{STEP}.not_back", "if _still_unhealthy(node, wanted) else", "if False else"),),
        tests=WALKS,
    ),
    Planted(
        name="a node that does not come back is waited for without an end",
        story="trusts that every boot ends",
        edits=(edit(f"{STEP}._await_return", "if now >= requested + BACK_WITHIN:", "if False:"),),
        tests=WALKS,
    ),
    Planted(
        name="a node whose API server was away is replaced for a reboot that it has survived",
        story="gives up at the first look past the deadline",
        edits=(edit(f"{STEP}._await_return", "return _give_up(", "return _replace("),),
        tests=DOUBTS,
    ),
    Planted(
        name="a node that does not come back in an outage is replaced",
        story="asks the circuit breaker before the reboot alone",
        edits=(edit(f"{STEP}._give_up", "if held := _circuit_breaker(record, node, ports):", "if held := '':"),),
        tests=DOUBTS,
    ),
    Planted(
        name="a node that is well again is rebooted",
        story="trusts the condition of the claim",
        edits=(edit(f"{STEP}._request", "over = _over(record, node)", "over = ''"),),
        tests=DOUBTS,
    ),
    Planted(
        name="a node is rebooted in a zone that EKS has shifted away from",
        story="asks the circuit breaker alone before the reboot",
        edits=(edit(f"{RECONCILE}.repair.reason_to_wait", "state.why_shifted(state.zone_of(node)) or", ""),),
        tests=DOUBTS,
    ),
    Planted(
        name="an event that EC2 has canceled drains its node",
        story="reads the code of an event, and not its description",
        edits=(edit(f"{RECONCILE}.scheduled_events._is_due", "policy is None or event.over or", "policy is None or"),),
        tests=("tests/unit/reconcile/test_scheduled_events.py",),
    ),
    Planted(
        name="any boot ends the wait for EC2's reboot",
        story="takes another boot id for the scheduled one",
        edits=(
            edit(
                "leeward.termination.reboot.after_ec2_reboot",
                "not wait.missing and (late or not listed)",
                "not wait.missing",
            ),
        ),
        tests=("tests/state_machines/test_scheduled_reboots.py",),
    ),
    Planted(
        name="a node that EKS repairs is repaired twice",
        story="does not ask whether EKS repairs the group",
        edits=(
            edit(f"{RECONCILE}.unhealthy_nodes._why_left", "if eks := left_to_eks(group, state):", "if eks := '':"),
        ),
        tests=("tests/unit/reconcile/test_managed_repair.py",),
    ),
)
