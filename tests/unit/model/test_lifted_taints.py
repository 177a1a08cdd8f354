"""A taint that an operator lifts during a drain, which taints again: whose cordon it is then."""

from dataclasses import replace

import pytest

from leeward.model import well_known
from leeward.model.node import Taint, tainted, untainted
from tests.fakes.builders import a_node

TAINT = Taint(key=well_known.DISRUPTED_TAINT, value="ours", effect="NoSchedule")


@pytest.mark.parametrize("theirs", [False, True])
def test_a_cordon_of_ours_goes_with_the_second_taint_and_one_of_another_owner_stays(theirs):
    node = replace(a_node(), unschedulable=theirs)
    drained = tainted(node, TAINT, cordon=True, exclude=True)
    again = tainted(replace(drained, taints=()), TAINT, cordon=True, exclude=True)
    assert again.taints == (TAINT,)
    assert untainted(again, TAINT).unschedulable is theirs


def test_a_cordon_that_was_there_before_the_first_taint_is_another_owner_s():
    node = tainted(replace(a_node(), unschedulable=True), TAINT, cordon=True)
    assert untainted(node, TAINT).unschedulable
