"""Planted builds: drift, what runs remember, and groups whose sizes are no instance counts."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

EVIDENCE = "leeward.drift.evidence"

OF_DRIFT = (
    Planted(
        name="a security group that another owner adds is drift",
        story="compares the security groups one to one",
        edits=(
            edit(
                "leeward.drift.differences.of_instance",
                "set(have.security_groups) - added != set(want.security_groups)",
                "set(have.security_groups) != set(want.security_groups)",
            ),
        ),
        tests=("tests/unit/drift/test_evidence.py",),
    ),
    Planted(
        name="security groups of all interfaces are those of the instance",
        story="joins the groups of the interfaces of a launch template",
        edits=(
            edit(
                "leeward.model.instance._groups_of_template",
                'found = interface.get("Groups") or found',
                "pass",
            ),
            edit(
                "leeward.model.instance._groups_of_template",
                'if not interface.get("DeviceIndex") and not interface.get("NetworkCardIndex"):',
                'found = [*found, *(interface.get("Groups") or ())]\n        if interface is None:',
            ),
        ),
        tests=("tests/properties/test_drift_of_launches.py", "tests/unit/model/test_group.py"),
    ),
    Planted(
        name="what new nodes show again is replaced again",
        story="takes the comparison with the launch template for proof of the next launch",
        edits=(edit(f"{EVIDENCE}.Evidence._with_proof", "if reason.field in UNPROVED:", "if True:"),),
        tests=("tests/simulation/test_drift_disruptions.py",),
    ),
    Planted(
        name="members of the present version prove nothing",
        story="waits for a replacement to show it",
        edits=(edit(f"{EVIDENCE}._is_from", "source is not None", "False"),),
        tests=("tests/unit/drift/test_evidence.py",),
    ),
    Planted(
        name="a parameter that moves proves that its image is not launched",
        story="takes every difference for one that the launch template version decides",
        edits=(
            edit(
                f"{EVIDENCE}._decided_by_version",
                "not (reason.field is Field.AMI and (launch.alias or launch.overridden))",
                "True",
            ),
        ),
        tests=("tests/unit/drift/test_evidence.py",),
    ),
    Planted(
        name="proofs are forgotten with the node that showed them",
        story="keeps what the present nodes prove",
        edits=(edit(f"{EVIDENCE}.remembered", ", **before.proofs}", "}"),),
        tests=("tests/unit/drift/test_evidence.py",),
    ),
    Planted(
        name="a change that comes to each node after its launch is fixed again and again",
        story="takes a difference that one node shows for a change of that node",
        edits=(edit(f"{EVIDENCE}.Evidence._proof", "if how and first != node.instance_id:", "if False:"),),
        tests=("tests/unit/drift/test_evidence.py",),
    ),
    Planted(
        name="proofs outlive the wanted value",
        story="remembers proofs by group",
        edits=(
            edit(
                f"{EVIDENCE}.remembered",
                "since=snapshot.now.replace(microsecond=0))",
                "since=snapshot.now, proofs=before.proofs if before else {})",
            ),
        ),
        tests=("tests/unit/drift/test_evidence.py",),
    ),
    Planted(
        name="a command whose new node did not serve is planned again",
        story="counts on the second validation, which drops it each time",
        edits=(edit("leeward.disruption.targets.why_failed_before", "if failed is None:", "if True:"),),
        tests=("tests/unit/disruption/test_remembered.py",),
    ),
    Planted(
        name="what the last node of a group showed is forgotten with it",
        story="asks the nodes that are there",
        edits=(edit("leeward.node_template.observed.recalled", "if seen is None or launch is None:", "if True:"),),
        tests=("tests/simulation/test_misread_groups.py", "tests/unit/node_template/test_remembered.py"),
    ),
    Planted(
        name="what nodes of an older launch showed is taken for the next one",
        story="remembers by group and type",
        edits=(
            edit("leeward.node_template.observed.recalled", "if version != seen.version and", "if seen is None and"),
        ),
        tests=("tests/unit/node_template/test_remembered.py",),
    ),
    Planted(
        name="a run forgets the commands that the runs before it have dropped",
        story="writes what it has dropped into its own record",
        edits=(
            edit(
                "leeward.disruption.record.DisruptionRecord.remember_failed",
                "if inputs and self.new_of(number):",
                "if False:",
            ),
        ),
        tests=("tests/simulation/test_misread_groups.py",),
    ),
    Planted(
        name="a budget that was spent is remembered as a node that did not serve",
        story="remembers every command that was dropped",
        edits=(
            edit(
                "leeward.disruption.plan.revalidated",
                "if expensive or command.nodes in unplaced:",
                "if number in dropped:",
            ),
            edit(
                "leeward.disruption.plan.revalidated",
                "unfit[number] = expensive or unplaced[command.nodes]",
                "unfit[number] = dropped[number]",
            ),
        ),
        tests=("tests/unit/disruption/test_remembered.py",),
    ),
    Planted(
        name="weights are taken for instances",
        story="reads MinSize and MaxSize as numbers of nodes",
        edits=(edit("leeward.disruption.observation._counting_units", "if group.capacity_units", "if False"),),
        tests=("tests/unit/disruption/test_upgraded_groups.py",),
    ),
    Planted(
        name="a node of a group that counts units is replaced ahead",
        story="launches one instance for one unit",
        edits=(edit("leeward.termination.decisions._why_by_the_group", "if group.capacity_units:", "if False:"),),
        tests=("tests/state_machines/test_walks.py",),
    ),
)
