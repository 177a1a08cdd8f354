"""When all old nodes may leave load balancers at once: how Services and EndpointSlices are read (U7)."""

import pytest

from leeward.errors import AccessDeniedError
from leeward.model.load_balancing import Service
from leeward.policy.document import ClusterSettings
from leeward.upgrade.observation import Observation
from leeward.upgrade.terminations import Slice, exclusion, look_for_exclusion, set_cordons
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.builders import a_node, a_record, an_upgrade

META = {"namespace": "shop", "name": "web"}
BALANCED = Service.from_json({"metadata": META, "spec": {"type": "LoadBalancer"}})


def a_slice(*endpoints, service="web"):
    labels = {"kubernetes.io/service-name": service} if service else {}
    return Slice.from_json({"metadata": {**META, "labels": labels}, "endpoints": list(endpoints)})


@pytest.mark.parametrize(
    ("endpoint", "serves"),
    [
        ({"nodeName": "new", "conditions": {"ready": True}}, True),
        ({"nodeName": "new", "conditions": {"ready": False, "serving": True}}, False),
        ({"nodeName": "new", "conditions": {}}, True),
        ({"nodeName": "new"}, True),
        ({"nodeName": "old", "conditions": {"ready": True}}, False),
        ({"conditions": {"ready": True}}, False),
    ],
)
def test_only_a_ready_endpoint_on_a_new_node_counts(endpoint, serves):
    assert exclusion([BALANCED], [a_slice(endpoint)], {"new"}).at_once is serves


def test_a_slice_of_no_service_serves_none():
    assert not exclusion([BALANCED], [a_slice({"nodeName": "new"}, service=None)], {"new"}).at_once


def test_what_cannot_be_read_is_never_taken_for_served():
    class Denied:
        def read(self, what, parse):
            raise AccessDeniedError("services is forbidden")

    found = look_for_exclusion(Denied(), {"new"})
    assert (found.at_once, found.why) == (False, "Services could not be read: services is forbidden")


@pytest.mark.parametrize(
    ("ready", "record", "cordoned"),
    [
        (True, {"refusal": "AccessDenied"}, ["old-a"]),
        (False, {"refusal": "AccessDenied"}, []),
        (True, {}, ["old-a", "old-c"]),
    ],
)
def test_old_nodes_take_pods_in_a_zone_that_the_group_has_not_chosen_yet(ready, record, cordoned):
    class Kubernetes:
        def kubernetes(self, _):
            return self

        def cordon(self, node, *_, **__):
            names.append(node.name)

    names, nodes = [], [a_node("old-a", "a"), a_node("old-c", "c"), a_node("new-a", "a", ready=ready)]
    shown = an_upgrade(*nodes, new=["new-a"])
    observation = Observation(preflight=shown, instances={}, settings=ClusterSettings(name="blue"))
    set_cordons(a_record(FakeSystem(), **record), observation, Kubernetes())
    assert names == cordoned
