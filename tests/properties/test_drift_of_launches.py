"""A node launched now does not drift: whatever the template, the group and their owners' scripts and rules say."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.drift.detect import Remedy, all_drift, wanted_launches
from leeward.model.group import Group
from leeward.model.instance import Instance
from leeward.model.launch import LaunchSettings, LaunchTemplateRef
from tests.properties.test_disruption import EXAMPLES
from tests.unit.disruption.fleet import NOON, ZONES, a_fleet, a_policy, rules

KEYS = ("Name", "team", "cost")
VALUES = st.sampled_from(["a", "b"])
TAGS = st.dictionaries(st.sampled_from(KEYS), VALUES)
GROUPS = st.lists(st.sampled_from(["sg-1", "sg-2", "sg-3"]), min_size=1, unique=True)
TOKENS = st.sampled_from([None, "optional", "required"])


@st.composite
def templates(draw, image="ami-1"):
    """LaunchTemplateData with tags of instances and of volumes, groups of its own or of several interfaces."""
    specs = [{"ResourceType": kind, "Tags": listed(draw(TAGS))} for kind in ("volume", "instance")]
    data = {"ImageId": image, "InstanceType": "medium", "TagSpecifications": specs}
    if draw(st.booleans()):
        interfaces = [{"DeviceIndex": at, "NetworkCardIndex": at, "Groups": draw(GROUPS)} for at in range(3)]
        data["NetworkInterfaces"] = draw(st.permutations(interfaces[: draw(st.integers(1, 3))]))
    else:
        data["SecurityGroupIds"] = draw(GROUPS)
    tokens = draw(TOKENS)
    return data | ({"MetadataOptions": {"HttpTokens": tokens, "HttpPutResponseHopLimit": 2}} if tokens else {})


@st.composite
def owners(draw):
    """The group's tags, and what others do to every instance: rename it, force IMDSv2, add a security group."""
    tags = [{"Key": key, "Value": value, "PropagateAtLaunch": draw(st.booleans())} for key, value in draw(TAGS).items()]
    return {
        "tags": tags,
        "renames": draw(st.integers(0, 3)) == 3,
        "hardens": draw(st.integers(0, 3)) == 3,
        "adds": draw(st.booleans()),
    }


def listed(tags):
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def launched(name, data, owner):
    """The instance as DescribeInstances reports it, after boot script and rules."""
    tags = {tag["Key"]: tag["Value"] for spec in data["TagSpecifications"][1:] for tag in spec["Tags"]}
    tags |= {tag["Key"]: tag["Value"] for tag in owner["tags"] if tag["PropagateAtLaunch"]}
    tags |= {"aws:autoscaling:groupName": "web"} | ({"Name": f"web-{name}"} if owner["renames"] else {})
    interfaces = sorted(data.get("NetworkInterfaces", ()), key=lambda one: one["DeviceIndex"])
    groups = [*(interfaces[0]["Groups"] if interfaces else data["SecurityGroupIds"]), *(["sg-9"] * owner["adds"])]
    options = {"State": "applied", "HttpTokens": "optional", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled"}
    options |= data.get("MetadataOptions", {}) | ({"HttpTokens": "required"} if owner["hardens"] else {})
    return {
        "InstanceId": f"i-{name}",
        "ImageId": data["ImageId"],
        "Tags": listed(tags),
        "SecurityGroups": [{"GroupId": one} for one in groups],
        "MetadataOptions": options,
    }


class Story:
    """One group, its versions in their order, and nodes that are replaced one after another."""

    def __init__(self, owner, versions):
        raw = {"AutoScalingGroupName": "web", "Tags": owner["tags"]}
        self.owner, self.group = owner, Group.from_json(raw)
        self.versions = [
            {"LaunchTemplateId": "lt-1", "VersionNumber": number, "LaunchTemplateData": data}
            for number, data in enumerate(versions, 1)
        ]
        self.members, self.made, self.wanted = {}, 0, {}

    def launch(self, number, at):
        self.made += 1
        self.members[f"n{self.made}"] = (number, at, self.owner)

    def fleet(self, now):
        settings_of = [LaunchSettings.from_template(one) for one in self.versions]
        fields = {"tags": self.group.tags, "propagated": self.group.propagated}
        fleet = a_fleet(a_policy(disruption=rules()), now=now).group("web", launch=settings_of[-1], fields=fields)
        for name, (number, at, owner) in self.members.items():
            raw = launched(name, self.versions[number - 1]["LaunchTemplateData"], owner)
            found = Instance.from_json(raw)
            shown = {"image": found.image, "look": found.look, "launched": at, "subnet": f"subnet-{ZONES[0]}"}
            fleet.node(name, template=LaunchTemplateRef(id="lt-1", version=str(number)), instance=shown)
        from_ = {f"i-{name}": settings_of[number - 1] for name, (number, *_) in self.members.items()}
        return fleet.having(launched_from=from_, wanted_launches=self.wanted)

    def drift(self, now):
        snapshot = self.fleet(now).snapshot()
        found = all_drift(snapshot)
        self.wanted = wanted_launches(snapshot, found)
        return found


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=templates(), owner=owners(), count=st.integers(1, 3))
def test_a_node_launched_now_does_not_drift(data, owner, count):
    story = Story(owner, [data])
    for _ in range(count):
        story.launch(1, NOON - timedelta(minutes=5))
    found = story.drift(NOON)
    assert {one.remedy for one in found} == {Remedy.NONE}
    if not (owner["renames"] or owner["hardens"]):
        assert not [one.summary for one in found if one.drifted]


@settings(max_examples=EXAMPLES, deadline=None)
@given(old=templates(), new=templates(image="ami-2"), owner=owners(), count=st.integers(1, 4))
def test_a_new_version_rolls_every_node_once_and_then_none(old, new, owner, count):
    story, now = Story(owner, [old, new]), NOON
    for _ in range(count):
        story.launch(1, NOON - timedelta(days=1))
    for _ in range(count):
        drifted = [one.node for one in story.drift(now) if one.remedy is Remedy.REPLACE]
        assert drifted, "a node of the old image is left"
        now += timedelta(minutes=10)
        story.members.pop(drifted[0])
        story.launch(2, now)
    assert {number for number, *_ in story.members.values()} == {2}
    assert {one.remedy for one in story.drift(now + timedelta(minutes=10))} == {Remedy.NONE}


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=templates(), owner=owners(), count=st.integers(1, 3))
def test_tags_of_the_group_that_change_roll_a_node_at_most_once(data, owner, count):
    """No version tells which tags the group had when a node was launched: the first look does."""
    story = Story(owner, [data])
    for _ in range(count):
        story.launch(1, NOON - timedelta(days=1))
    story.drift(NOON - timedelta(hours=1))
    story.owner = {**owner, "tags": [{**tag, "Value": "c"} for tag in owner["tags"]]}
    story.group = Group.from_json({"AutoScalingGroupName": "web", "Tags": story.owner["tags"]})
    now, rolled, left = NOON, 0, True
    while left and rolled <= count:
        now += timedelta(minutes=10)
        left = [one.node for one in story.drift(now) if one.remedy is Remedy.REPLACE]
        if left:
            rolled += 1
            story.members.pop(left[0])
            story.launch(1, now)
    assert rolled <= count
