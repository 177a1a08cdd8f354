"""Nodes that share an instance: which of them stands for it."""

from dataclasses import replace
from datetime import timedelta
from itertools import permutations

import pytest

from leeward.cluster.joins import duplicates, nodes_by_instance
from tests.fakes.builders import LAUNCHED, a_node, an_instance

I = "i-0abc"  # noqa: E741
DNS = "ip-10-0-0-1.ec2.internal"


def a_twin(name, *, minutes=0, ready=True):
    return replace(a_node(I, ready=ready), name=name, uid=name, created=LAUNCHED + timedelta(minutes=minutes))


CASES = {
    "the kubelet has another name now": ([a_twin("old", ready=False), a_twin("new", minutes=9)], "", "new"),
    "a node names the instance of another": ([a_twin("victim"), a_twin("forged", minutes=9)], "", "victim"),
    "before the victim has joined": ([a_twin("forged"), a_twin(DNS, minutes=1)], DNS, DNS),
    "the victim does not report": ([a_twin(DNS, ready=False), a_twin("forged", minutes=9)], DNS, DNS),
    "a name that EC2 does not know": ([a_twin("old", ready=False), a_twin("new", minutes=9)], DNS, "new"),
    "none reports": ([a_twin("old", ready=False), a_twin("new", minutes=9, ready=False)], "", "new"),
    "alone, whatever its name": ([a_twin("custom", ready=False)], DNS, "custom"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_node_stands_for_the_instance_whatever_the_order(case):
    nodes, dns, expected = CASES[case]
    known = {I: replace(an_instance(I), dns=dns)} if dns else {}
    assert {nodes_by_instance(order, known)[I].name for order in permutations(nodes)} == {expected}


def test_duplicates_are_named_and_others_are_not():
    nodes = [a_twin("b", minutes=1), a_twin("a"), a_node("i-0def"), replace(a_node("x"), provider_id="")]
    assert {name: [n.name for n in same] for name, same in duplicates(nodes).items()} == {I: ["a", "b"]}
