"""A group that has gone to zero: what its last Ready nodes showed stays known while it launches the same."""

from dataclasses import replace

import pytest

from leeward.model.launch import LaunchSettings
from leeward.model.node import Taint
from leeward.node_template.observed import MOST_BYTES, MOST_LABELS, MOST_TYPES, Observed, kept, key_of, recalled

LAUNCH = LaunchSettings(template="lt-1", version=3, user_data="eA==")
SHOWN = Observed(
    labels={"team": "a"},
    by_zone={"us-east-1a": {"team": "a", "rack": "1"}, "us-east-1b": {"team": "a"}},
    taints=(Taint(key="dedicated", value="a=b", effect="NoSchedule"), Taint(key="plain", effect="NoExecute")),
    allocatable={"cpu": 1930, "memory": 6_000},
    carried=frozenset({("team", "a"), ("rack", "1"), ("kubernetes.io/hostname", "n1")}),
    nodes=2,
)
KEY = key_of("web", "m5.large")


def test_what_nodes_showed_is_known_when_they_are_gone():
    again = recalled(kept({KEY: (SHOWN, LAUNCH)})[KEY], LAUNCH)
    assert (again.labels, again.by_zone) == ({"team": "a"}, {"us-east-1a": {"rack": "1"}, "us-east-1b": {}})
    assert (again.taints, again.taints[0].value, again.allocatable) == (SHOWN.taints, "a=b", SHOWN.allocatable)
    assert (again.carried, again.nodes) == ({("team", "a"), ("rack", "1")}, 0)


@pytest.mark.parametrize(
    ("now", "known"),
    [
        (replace(LAUNCH, version=4), True),
        (replace(LAUNCH, user_data=""), True),
        (replace(LAUNCH, version=4, user_data="eQ=="), False),
        (replace(LAUNCH, version=4, user_data=""), False),
        (None, False),
    ],
)
def test_it_is_forgotten_when_the_group_launches_with_another_version_and_other_user_data(now, known):
    assert (recalled(kept({KEY: (SHOWN, LAUNCH)})[KEY], now) is not None) == known


def test_a_version_without_user_data_is_known_by_its_number_alone():
    plain = replace(LAUNCH, user_data="")
    (seen,) = kept({KEY: (SHOWN, plain)}).values()
    assert recalled(seen, plain) is not None
    assert recalled(seen, replace(plain, version=4)) is None


def test_the_memory_is_bounded_and_keeps_the_groups_with_the_fewest_nodes():
    labels = {f"label-{number:03}": "x" for number in range(MOST_LABELS + 5)}
    known = {key_of("g", f"t{n:02}"): (replace(SHOWN, labels=labels, nodes=20 - n), LAUNCH) for n in range(20)}
    found = kept(known)
    assert list(found) == [key_of("g", f"t{n:02}") for n in range(19, 19 - MOST_TYPES, -1)]
    assert {len(one.labels) for one in found.values()} == {MOST_LABELS}


def test_labels_as_long_as_kubernetes_allows_do_not_fill_the_record():
    labels = {f"{number:02}.{'d' * 250}/{'k' * 63}": "v" * 63 for number in range(MOST_LABELS)}
    zones = {f"zone-{number}": labels | {"rack": str(number)} for number in range(6)}
    wide = replace(SHOWN, labels={}, by_zone=zones, nodes=0)
    found = kept({key_of("wide", f"t{n}"): (wide, LAUNCH) for n in range(9)} | {KEY: (SHOWN, LAUNCH)})
    assert (list(found), len(repr(found)) < MOST_BYTES + 1_000) == ([KEY], True)


def test_nothing_is_kept_of_a_launch_that_cannot_be_read():
    assert kept({KEY: (SHOWN, None)}) == {}
