"""An upgrade's cordon without a taint: ours is noted and lifted, others' are neither (U7)."""

from dataclasses import replace

import pytest

from leeward.model import well_known
from leeward.model.node import Taint, cordoned, tainted, uncordoned, untainted
from tests.fakes.builders import a_node

TAINT = Taint(key=well_known.DISRUPTED_TAINT, effect="NoSchedule")


def test_it_is_lifted_without_a_trace():
    node = a_node()
    held = cordoned(node, "web", exclude=True)
    assert (held.unschedulable, held.tainted, held.labels[well_known.EXCLUDE_LABEL]) == (True, False, "true")
    assert uncordoned(held) == node
    assert cordoned(held, "web", exclude=True) == held


def test_a_cordon_and_a_label_of_another_owner_stay():
    node = replace(a_node(), unschedulable=True, labels={well_known.EXCLUDE_LABEL: "mine"})
    held = cordoned(node, "web", exclude=True)
    assert held == node
    assert uncordoned(held) == node


def test_a_node_that_is_returned_stays_cordoned_for_the_upgrade():
    held = cordoned(a_node(), "web")
    back = untainted(tainted(held, TAINT, cordon=True), TAINT)
    assert back == held
    assert uncordoned(back) == a_node()


def test_a_node_on_its_way_out_serves_again_only_when_it_is_returned():
    leaving = tainted(cordoned(a_node(), "web"), TAINT, cordon=True)
    lifted = uncordoned(leaving)
    assert lifted.unschedulable
    assert not untainted(lifted, TAINT).unschedulable


def test_a_node_on_its_way_out_stays_out_of_load_balancers_when_an_upgrade_takes_its_label_back():
    """A rollback returns the old nodes to service, and one of them is being drained: its pods are evicted later."""
    leaving = tainted(cordoned(a_node(), "web", exclude=True), TAINT, cordon=True, exclude=True)
    lifted = uncordoned(leaving)
    assert lifted.labels[well_known.EXCLUDE_LABEL] == "true"
    assert untainted(lifted, TAINT) == a_node()


def test_a_node_on_its_way_out_is_no_target_of_load_balancers_and_is_one_again_when_it_is_returned():
    """The Node Termination Handler never took its label off again: its comparison was the wrong way round."""
    leaving = tainted(a_node(), TAINT, cordon=True, exclude=True)
    assert leaving.labels[well_known.EXCLUDE_LABEL] == "true"
    assert tainted(leaving, TAINT, cordon=True, exclude=True) == leaving
    assert untainted(leaving, TAINT) == a_node()


def test_a_node_that_was_only_tainted_is_excluded_later_all_the_same():
    """fn interruption taints first, the drain excludes."""
    leaving = tainted(tainted(a_node(), TAINT, cordon=True), TAINT, cordon=True, exclude=True)
    assert leaving.labels[well_known.EXCLUDE_LABEL] == "true"
    assert untainted(leaving, TAINT) == a_node()


def test_a_label_of_another_owner_or_of_an_upgrade_stays_when_the_taint_comes_off():
    theirs = replace(a_node(), labels={well_known.EXCLUDE_LABEL: "mine"})
    assert untainted(tainted(theirs, TAINT, cordon=True, exclude=True), TAINT) == theirs
    held = cordoned(a_node(), "web", exclude=True)
    assert untainted(tainted(held, TAINT, cordon=True, exclude=True), TAINT) == held


def test_a_label_of_ours_comes_off_though_another_tool_has_removed_the_taint():
    leaving = tainted(a_node(), TAINT, cordon=True, exclude=True)
    tampered = replace(leaving, taints=(), unschedulable=False)
    assert untainted(tampered, TAINT) == a_node()


def test_a_cordon_of_ours_comes_off_though_the_taint_was_removed_during_the_drain_and_added_again():
    """An operator removes the taint; the drain adds it again within seconds."""
    tampered = replace(tainted(a_node(), TAINT, cordon=True, exclude=True), taints=())
    assert untainted(tainted(tampered, TAINT, cordon=True, exclude=True), TAINT) == a_node()
    assert untainted(tampered, TAINT) == a_node()


def test_a_cordon_of_another_owner_stays_though_the_taint_was_removed_and_added_again():
    theirs = replace(a_node(), unschedulable=True)
    tampered = replace(tainted(theirs, TAINT, cordon=True), taints=())
    assert untainted(tainted(tampered, TAINT, cordon=True), TAINT) == theirs
    assert untainted(tampered, TAINT) == theirs


def test_a_cordon_without_our_taint_is_not_noted():
    """A rebalance recommendation may only cordon: nothing removes that again."""
    only = tainted(a_node(), Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule"), cordon=True)
    assert only.unschedulable
    assert not only.taken_out


@pytest.mark.parametrize("unschedulable", [False, True])
def test_tainting_again_and_again_leaves_the_owner_of_the_cordon(unschedulable):
    node = replace(a_node(), unschedulable=unschedulable)
    leaving = tainted(tainted(node, TAINT, cordon=False), TAINT, cordon=True)
    assert tainted(leaving, TAINT, cordon=True) == leaving
    assert untainted(leaving, TAINT) == node
