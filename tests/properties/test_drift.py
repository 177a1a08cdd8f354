"""What holds of drift and of drift runs, on generated fleets."""

from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.disruption.annotations import annotation_changes
from leeward.disruption.command import MethodName
from leeward.disruption.plan import plan_disruption
from leeward.drift.detect import drift_of
from leeward.model import well_known
from leeward.model.instance import LaunchAttributes
from leeward.model.launch import LaunchSettings
from leeward.policy.document import DesiredNode, NodeRequirement
from tests.properties.test_disruption import EXAMPLES, fleets
from tests.unit.disruption.fleet import ROOM, ZONES, a_fleet, a_policy, rules


@st.composite
def drifting(draw):
    """One group and what it launches now, nodes from other times, a policy that asks for labels, types and zones."""
    teams, kinds = st.sampled_from(["a", "b"]), st.lists(st.sampled_from(sorted(ROOM)), min_size=1, unique=True)
    looks = st.builds(
        LaunchAttributes, security_groups=st.sampled_from([None, ("sg-1",), ("sg-2",)]), monitoring=st.booleans()
    )
    launches = st.builds(
        LaunchSettings,
        image=st.sampled_from(["", "ami-1", "ami-2"]),
        user_data=st.sampled_from(["", "eA=="]),
        look=looks,
    )
    asked = draw(st.lists(st.builds(_one_of, st.just(well_known.INSTANCE_TYPE_LABEL), kinds), max_size=1))
    asked += draw(st.lists(st.builds(_one_of, st.just(well_known.ZONE_LABEL), st.just(ZONES[:2])), max_size=1))
    wanted = DesiredNode(labels=draw(st.sampled_from([{}, {"team": "a"}])))
    fleet = a_fleet(a_policy(disruption=rules(), requirements=tuple(asked), node=wanted))
    zones, launch = ZONES[: draw(st.integers(1, 3))], draw(launches)
    fleet.group("web", *draw(kinds), zones=zones, launch=launch, labels={"team": draw(teams)})
    then = {}
    for number in range(draw(st.integers(1, 4))):
        came_from = draw(launches)
        look = {"image": came_from.image or "ami-0", "look": came_from.look}
        kind, zone = draw(st.sampled_from(sorted(ROOM))), draw(st.sampled_from(ZONES))
        fleet.node(f"n{number}", type=kind, zone=zone, instance=look, labels={"team": draw(teams)})
        fleet.pod(f"p{number}", f"n{number}", cpu="900m")
        then[f"i-n{number}"] = came_from
    return fleet.having(launched_from=then)


def _one_of(key, values):
    return NodeRequirement(key=key, operator="In", values=tuple(values))


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleet=drifting())
def test_after_a_drift_round_no_new_node_has_drifted(fleet):
    """Whatever type comes up, in whichever zone."""
    launch, labels = fleet.groups["web"]["launch"], fleet.groups["web"]["labels"]
    commands = plan_disruption(fleet.snapshot(), only=MethodName.DRIFT).commands
    coming = {(kind, zone) for one in commands for new in one.replacements for kind in new.types for zone in new.zones}
    for number, (kind, zone) in enumerate(sorted(coming)):
        shown = {"image": launch.image or "ami-9", "look": launch.look, "subnet": f"subnet-{zone}"}
        fleet.node(f"new-{number}", type=kind, zone=zone, instance=shown, labels=labels)
    after = fleet.snapshot()
    new = [drift_of(after, node) for node in after.nodes if node.name.startswith("new-")]
    assert not [one.summary for one in new if one.drifted]


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleet=fleets())
def test_drift_is_idempotent_and_a_node_that_replaces_a_drifted_one_is_in_order(fleet):
    carried_out = {change.node.name: change for change in annotation_changes(fleet.snapshot(), fleet.now)}
    for raw in fleet.nodes:
        change = carried_out[raw["metadata"]["name"]]  # at least the hashes are new
        raw["metadata"]["annotations"] = {**raw["metadata"]["annotations"], **change.set}
    assert not annotation_changes(fleet.snapshot(), fleet.now)
    for command in plan_disruption(fleet.snapshot(), only=MethodName.DRIFT).commands:
        for number, new in enumerate(command.replacements):
            image = fleet.groups[new.group]["launch"].image
            for kind in new.types:
                name = f"new-{number}-{kind}"
                spot = new.capacity == "spot"
                fleet.node(name, group=new.group, type=kind, zone=new.zones[0], spot=spot, instance={"image": image})
                after = fleet.snapshot()
                assert not drift_of(after, after.node(name)).drifted
