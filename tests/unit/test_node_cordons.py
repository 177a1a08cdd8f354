"""An upgrade's cordon without a taint: ours is noted and lifted, others' are neither (U7)."""

from dataclasses import replace

from leeward.model import keys
from leeward.model.node import Taint, cordoned, marked, uncordoned, unmarked
from tests.fakes.builders import a_node

MARK = Taint(key=keys.DISRUPTED_TAINT, effect="NoSchedule")


def test_it_is_lifted_without_a_trace():
    node = a_node()
    held = cordoned(node, "web", exclude=True)
    assert (held.unschedulable, held.marked, held.labels[keys.EXCLUDE_LABEL]) == (True, False, "true")
    assert uncordoned(held) == node
    assert cordoned(held, "web", exclude=True) == held


def test_a_cordon_and_a_label_of_somebody_else_stay():
    node = replace(a_node(), unschedulable=True, labels={keys.EXCLUDE_LABEL: "mine"})
    held = cordoned(node, "web", exclude=True)
    assert held == node
    assert uncordoned(held) == node


def test_a_node_that_is_given_back_stays_cordoned_for_the_upgrade():
    held = cordoned(a_node(), "web")
    back = unmarked(marked(held, MARK, cordon=True), MARK.key)
    assert back == held
    assert uncordoned(back) == a_node()


def test_a_node_on_its_way_out_serves_again_only_when_it_is_given_back():
    leaving = marked(cordoned(a_node(), "web"), MARK, cordon=True)
    lifted = uncordoned(leaving)
    assert lifted.unschedulable
    assert not unmarked(lifted, MARK.key).unschedulable
