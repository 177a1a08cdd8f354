"""Nodes that a group would launch: what is the same for every type, and what a zone adds."""

from leeward.model.facts import Prices
from leeward.model.group import Group
from leeward.model.instance import CapacityType
from leeward.model.subnet import Subnet
from leeward.node_template.build import ExpectedNode
from leeward.node_template.choices import Choices
from leeward.node_template.provenance import Attribute, Provenance
from leeward.scheduling.node_sets import Admission
from leeward.scheduling.selectors import NodeChoice
from leeward.snapshot.launchable import launchable

ZONE_ID = "topology.k8s.aws/zone-id"
SUBNETS = (Subnet(id="subnet-1", zone="a", zone_id="tst1-az3"), Subnet(id="subnet-2", zone="b"))


def launches(*estimated, origin=Provenance.DECLARED, **labels_of_types):
    """`labels_of_types`: by instance type; `estimated`: keys of labels of which a script alone speaks."""
    group = Group(
        name="web", tags={}, minimum=0, maximum=9, desired=0, zones=("a", "b"), subnets=("subnet-1", "subnet-2")
    )
    expected = [
        ExpectedNode(
            name="web-template",
            group="web",
            labels=labels,
            taints=(),
            capacity={},
            allocatable={},
            estimated=frozenset(estimated),
            provenance={Attribute.LABELS: origin},
        )
        for labels in labels_of_types.values()
    ]
    choices = Choices(types=tuple(labels_of_types), zones=group.zones, capacity=CapacityType.ON_DEMAND)
    return launchable(group, choices, expected, SUBNETS, Prices())


def test_new_nodes_of_a_zone_carry_the_id_of_the_zone():
    template = launches(small={"pool": "web", ZONE_ID: "of-another"}).template
    assert [template.new_node(at, 1).labels.get(ZONE_ID) for at in (0, 1)] == ["tst1-az3", None]


def test_the_labels_of_each_zone_are_its_own():
    found = launches(small={"pool": "web", ZONE_ID: "of-another", "kubernetes.io/hostname": "template"})
    (first,), (second,) = found.labels_in("a"), found.labels_in("b")
    assert (first[ZONE_ID], first["topology.kubernetes.io/zone"], first["pool"]) == ("tst1-az3", "a", "web")
    assert (second.get(ZONE_ID), second["topology.kubernetes.io/zone"]) == (None, "b")


def refused(template, *lines, operator="In", labels=None):
    """Whether a pod with this node affinity is refused on a new node."""
    expression = {"key": lines[0], "operator": operator, **({"values": list(lines[1:])} if lines[1:] else {})}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    choice = NodeChoice.from_json({"affinity": affinity, "nodeSelector": labels or {}})
    return bool(Admission(tolerations=(), nodes=choice).refusal(template.new_node(0, 1)))


def test_a_requirement_holds_if_it_holds_for_the_label_of_every_type():
    large = {"kind": "large", "arch": "amd64", "pool": "web"}
    template = launches(large=large, arm={"kind": "arm", "pool": "web"}).template
    assert template.node.labels == {"pool": "web"}
    assert not refused(template, "kind", "large", "arm", "huge")
    assert refused(template, "kind", "large")
    assert not refused(template, "kind", "huge", operator="NotIn")
    assert refused(template, "kind", "arm", operator="NotIn")
    assert not refused(template, "kind", operator="Exists")
    assert refused(template, "arch", operator="Exists"), "one type is without it"
    assert refused(template, "arch", operator="DoesNotExist")
    assert not refused(template, "kind", "large", "arm", labels={"pool": "web"})


def test_terms_are_tried_for_each_type_and_labels_of_one_type_are_its_own():
    template = launches(a={"size": "1", "arch": "x"}, b={"size": "2", "arch": "y"}).template
    terms = [{"size": "1", "arch": "x"}, {"size": "2", "arch": "y"}]

    def choice(*terms):
        lines = [[{"key": key, "operator": "In", "values": [value]} for key, value in one.items()] for one in terms]
        required = {"nodeSelectorTerms": [{"matchExpressions": line} for line in lines]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return Admission(tolerations=(), nodes=NodeChoice.from_json({"affinity": affinity}))

    assert not choice(*terms).refusal(template.new_node(0, 1))
    assert choice({"size": "1", "arch": "y"}, {"size": "2", "arch": "x"}).refusal(template.new_node(0, 1))


def test_a_label_that_a_script_alone_promises_forbids_and_never_permits():
    found = launches("pool", small={"pool": "batch", "arch": "amd64"})
    assert not refused(found.template, "pool", "batch")
    assert refused(found.certain, "pool", "batch")
    assert refused(found.certain, "pool", operator="Exists")
    assert refused(found.certain, "pool", "batch", operator="NotIn")
    assert refused(found.certain, "pool", operator="DoesNotExist")
    assert not refused(found.certain, "pool", "web", operator="NotIn")
    assert not refused(found.certain, "arch", "amd64")
    assert launches(small={"pool": "batch"}).certain == launches(small={"pool": "batch"}).template


def test_a_node_whose_labels_are_unknown_may_carry_others_than_the_shown_ones():
    found = {origin: launches(origin=origin, small={"pool": "web"}).certain.new_node(0, 1) for origin in Provenance}
    assert [origin for origin, node in found.items() if node.open_labels] == [Provenance.UNKNOWN]
