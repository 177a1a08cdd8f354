"""Which group holds an instance, which policy selects it, and what a facet says that was not read."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.cluster.facets import NOT_LOADED, Known, Unavailable, known_or, load, required
from leeward.cluster.joins import group_name, listed_groups
from leeward.cluster.state import ClusterState
from leeward.errors import ClusterUnreachableError, FacetUnavailableError, UnexpectedError
from tests.fakes.builders import a_group, a_node, a_policy, an_instance, policies

INSTANCE = "i-0abc"


def a_state(*groups, tagged=None, node=True, **rest):
    """Build a state with one node; `tagged`: the group that the tag of its instance names."""
    instances = {INSTANCE: an_instance(INSTANCE, group=tagged)} if tagged else {}
    return ClusterState(
        cluster="blue",
        policies=policies(a_policy()),
        groups={group.name: group for group in groups},
        instances=instances,
        node_list=Known((a_node(INSTANCE),) if node else ()),
        **rest,
    )


def held_by(state):
    group = state.group_of(a_node(INSTANCE))
    return group.name if group else None


class TestGroupOfAnInstance:
    def test_the_group_that_lists_it_comes_before_the_one_that_its_tag_names(self):
        """It was attached to another group a moment ago: EC2 shows the new tag some seconds later."""
        assert held_by(a_state(a_group("old"), a_group("new", INSTANCE), tagged="old")) == "new"

    def test_an_instance_that_ec2_was_not_asked_for_is_in_the_group_that_lists_it(self):
        assert held_by(a_state(a_group("web", INSTANCE))) == "web"

    def test_a_member_of_a_warm_pool_is_in_the_group_that_its_tag_names(self):
        """A group does not list the instances of its warm pool."""
        state = a_state(a_group("web"), tagged="web")
        assert held_by(state) == "web"
        assert state.group_of_instance(INSTANCE).lifecycle_of(INSTANCE) is None

    def test_a_detached_instance_has_no_group(self):
        """Auto Scaling removes the tag with the membership."""
        state = replace(a_state(a_group("web")), instances={INSTANCE: an_instance(INSTANCE, group=None)})
        assert held_by(state) is None

    def test_of_two_groups_that_list_it_the_one_that_was_read_later_counts(self):
        """Groups are listed page by page; it moved between two pages."""
        assert held_by(a_state(a_group("a", INSTANCE), a_group("b", INSTANCE), tagged="a")) == "b"
        assert held_by(a_state(a_group("b", INSTANCE), a_group("a", INSTANCE), tagged="b")) == "a"

    def test_a_group_of_another_cluster_is_none_of_ours(self):
        assert held_by(a_state(a_group("web"), tagged="elsewhere")) is None

    def test_a_node_without_an_instance_has_no_group(self):
        state = a_state(a_group("web", INSTANCE))
        assert state.group_of(replace(a_node(INSTANCE), provider_id="")) is None

    def test_the_rule_alone(self):
        listed = listed_groups([a_group("old"), a_group("new", INSTANCE)])
        assert group_name(listed.get(INSTANCE), an_instance(INSTANCE, group="old")) == "new"
        assert group_name(None, an_instance(INSTANCE, group="old")) == "old"
        assert group_name(None, None) is None


class TestNodeOfAnInstance:
    @pytest.mark.parametrize("newer_first", [True, False])
    def test_an_instance_that_registered_again_has_its_newer_node(self, newer_first):
        old = a_node(INSTANCE, ready=False)
        new = replace(old, name="renamed", uid="uid-renamed", created=old.created + timedelta(hours=1), ready=True)
        state = replace(a_state(), node_list=Known((new, old) if newer_first else (old, new)))
        assert state.node_of(INSTANCE) is new
        assert (state.is_superseded(old), state.is_superseded(new)) == (True, False)

    def test_nodes_without_an_instance_are_all_there(self):
        hybrid = [replace(a_node(name), provider_id="") for name in ("a", "b")]
        state = replace(a_state(), node_list=Known(tuple(hybrid)))
        assert len(state.nodes) == 2
        assert not any(map(state.is_superseded, hybrid))


class TestPolicy:
    def test_a_node_has_the_policy_of_the_group_that_holds_its_instance(self):
        state = a_state(a_group("web-a", INSTANCE))
        assert state.policy_of_node(a_node(INSTANCE)) is state.policies.policies[0]
        assert [group.name for group in state.selected] == ["web-a"]

    def test_a_node_without_a_group_has_no_policy(self):
        assert a_state().policy_of_node(a_node(INSTANCE)) is None


class TestFacets:
    def test_nodes_that_were_not_read_are_no_empty_cluster(self):
        state = ClusterState(cluster="blue", policies=policies(), node_list=Unavailable("the API server is away"))
        with pytest.raises(FacetUnavailableError, match="the nodes of blue: the API server is away"):
            _ = state.nodes
        assert state.node_of(INSTANCE) is None
        assert a_state(node=False).nodes == ()

    def test_claims_that_were_not_loaded_are_not_taken_for_none(self):
        with pytest.raises(FacetUnavailableError, match="it was not loaded"):
            _ = a_state().claimed
        assert a_state(claims=Known(frozenset({INSTANCE}))).claimed == {INSTANCE}

    def test_a_reader_that_can_do_without_a_facet_says_so(self):
        assert known_or(NOT_LOADED, frozenset()) == frozenset()
        assert known_or(Known(3), 0) == 3
        assert required(Known(3), "the number") == 3

    def test_a_read_that_fails_is_noted_and_its_reason_kept(self):
        noted = []

        def away():
            raise ClusterUnreachableError("timed out")

        assert load(away, noted.append) == Unavailable("timed out")
        assert [type(error) for error in noted] == [ClusterUnreachableError]

    def test_a_defect_in_a_read_is_no_value_either(self):
        noted = []
        assert isinstance(load(lambda: {}["nodes"], noted.append), Unavailable)
        assert isinstance(noted[0], UnexpectedError)
