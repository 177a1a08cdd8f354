"""TC1 to TC6 of Cluster Autoscaler's proposal "Circumvent 50 tag ASG limit for EKS ManagedNodegroups", by their names.

That the real adapter makes the same request is in tests/adapters/test_nodegroups.py."""

from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError
from leeward.node_template.cache import NodegroupCache
from tests.fakes.clock import FakeClock
from tests.fakes.nodegroups import FakeNodegroups
from tests.unit.node_template.builders import MANAGED, PREFIX, a_group, a_nodegroup, labels

MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def eks():
    return FakeNodegroups([a_nodegroup(labels={"team": "web"})])


@pytest.fixture
def said():
    return []


@pytest.fixture
def cache(eks, clock, said):
    return NodegroupCache(eks, clock, chance=lambda: 0.0, say=said.append)


def the_labels(cache, tags=None):
    """As a caller gets them: through the cache, at whatever moment."""
    group = a_group(tags={**MANAGED, **(tags or {})})
    return labels(group=group, nodegroup=cache.get(group.cluster, group.nodegroup, MINUTE))


def test_tc1_a_describe_nodegroup_request_names_the_cluster_and_the_node_group_of_the_tags(cache, eks):
    eks.known = {("blue", "web"): a_nodegroup(labels={"team": "web"}), ("green", "web"): a_nodegroup()}
    assert the_labels(cache)["team"] == "web"
    assert eks.asked["describe"] == 1


def test_tc2_values_come_from_the_cache_while_they_are_younger_than_the_ttl(cache, eks, clock):
    the_labels(cache)
    eks.known = {("blue", "web"): a_nodegroup(labels={"team": "changed"})}
    clock.advance(seconds=59)
    assert the_labels(cache)["team"] == "web"
    assert eks.asked["describe"] == 1


def test_tc3_the_api_is_called_where_no_data_exists(cache, eks):
    assert eks.asked["describe"] == 0
    the_labels(cache)
    cache.get("blue", "another", MINUTE)
    assert eks.asked["describe"] == 2


def test_tc4_the_api_is_called_again_once_the_ttl_has_expired(cache, eks, clock):
    the_labels(cache)
    eks.known = {("blue", "web"): a_nodegroup(labels={"team": "changed"})}
    clock.advance(seconds=60)
    assert the_labels(cache)["team"] == "changed"
    assert eks.asked["describe"] == 2


def test_tc5_missing_permissions_fall_back_to_the_tags_alone(cache, eks, said):
    eks.fail("describe", AccessDeniedError("eks:DescribeNodegroup on blue/web: AccessDeniedException"))
    found = the_labels(cache, {PREFIX + "label/team": "of-the-tag"})
    assert found["team"] == "of-the-tag"
    assert (found["nodegroup-name"], found["cluster-name"]) == ("web", "blue")
    assert not {"amiType", "k8sVersion"} & found.keys()
    assert len(said) == 1
    assert "only the group's tags are used: eks:DescribeNodegroup on blue/web: AccessDeniedException" in said[0]


def test_tc6_of_duplicate_label_keys_the_tag_of_the_group_wins(cache):
    assert the_labels(cache, {PREFIX + "label/team": "of-the-tag"})["team"] == "of-the-tag"
