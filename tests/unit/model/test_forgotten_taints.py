"""When a disruption taint of another controller counts no more: docs/coexistence.md."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.node import Taint, disruption_taint
from leeward.model.node_condition import first_seen, noted
from leeward.model.node_owners import disruption_taint_of, forgotten_taints
from leeward.model.times import format_instant
from leeward.model.well_known import FIRST_SEEN
from tests.fakes.builders import a_node
from tests.fakes.clock import START

AUTOSCALER, KARPENTER = "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
NOW = format_instant(START)


def tainted(key=AUTOSCALER, value="", added=None, **rest):
    added = format_instant(added) if added else ""
    return replace(a_node(taints=(Taint(key=key, effect="NoSchedule", value=value, added=added),)), **rest)


def unix(moment):
    return str(int(moment.timestamp()))


@pytest.mark.parametrize(
    ("age", "forgotten"), [(2 * HOUR, False), (2 * HOUR + timedelta(seconds=1), True), (-HOUR, False)]
)
@pytest.mark.parametrize(
    "by",
    [
        lambda since: tainted(value=unix(since)),
        lambda since: tainted(KARPENTER, added=since),
        lambda since: tainted(KARPENTER, annotations={FIRST_SEEN: f"{KARPENTER}={format_instant(since)}/{NOW}"}),
        lambda since: tainted(value="soon", annotations={FIRST_SEEN: f"{AUTOSCALER}={format_instant(since)}/{NOW}"}),
    ],
    ids=["its value", "timeAdded", "first sight", "first sight, unreadable value"],
)
def test_two_hours_after_it_was_put_there_it_is_forgotten(by, age, forgotten):
    node = by(START - age)
    assert bool(disruption_taint_of(node, START)) is not forgotten
    assert list(forgotten_taints(node, START).values()) == ([START - age] if forgotten else [])


@pytest.mark.parametrize("value", ["", "soon", "0", "-1", "²", "9" * 400, "17936640001793664000"])
def test_of_a_value_that_is_no_time_nothing_is_concluded(value):
    assert disruption_taint_of(tainted(value=value), START) == AUTOSCALER


def test_on_a_node_that_is_being_deleted_or_that_karpenter_owns_it_stays_in_force():
    """A NodeClaim, which is not read, may be under deletion."""
    old = unix(START - 30 * HOUR)
    assert disruption_taint_of(tainted(value=old, deleting=True), START)
    owned = {"karpenter.sh/nodepool": "default"}
    assert disruption_taint_of(tainted(KARPENTER, added=START - 30 * HOUR, labels=owned), START)


def test_the_taint_of_leeward_is_never_forgotten():
    node = replace(a_node(), taints=(*tainted(value=unix(START - 30 * HOUR)).taints, disruption_taint("other")))
    assert disruption_taint_of(node, START) == "leeward.dev/disrupted"


def seen(node, lasting, now):
    return replace(node, annotations={FIRST_SEEN: noted(node, lasting, now)})


def test_first_sights_stay_until_what_they_are_of_ends():
    node = seen(a_node(), ["b", "a=c"], START)
    assert first_seen(node, START) == {"b": START, "a=c": START}
    later = START + 10 * MINUTE
    assert first_seen(seen(node, ["b", "d"], later), later) == {"b": START, "d": later}
    assert noted(node, [], later) is None


def test_a_first_sight_is_renewed_by_one_write_in_five_minutes():
    node, writes = seen(a_node(), ["b"], START), 0
    for minute in range(1, 61):
        after = seen(node, ["b"], START + minute * MINUTE)
        node, writes = after, writes + (after != node)
    assert (writes, first_seen(node, START + HOUR)) == (12, {"b": START})


def test_a_condition_is_not_known_to_have_lasted_through_a_time_without_a_look():
    """An API server that comes back after an outage shows nodes that were not Ready before it, and in it."""
    node, back = seen(a_node(), ["Ready"], START), START + 16 * MINUTE
    assert first_seen(node, back) == {}
    assert first_seen(seen(node, ["Ready"], back), back) == {"Ready": back}


@pytest.mark.parametrize(
    "text", ["", "=", ",", "Ready", "Ready=", f"={NOW}/{NOW}", f"Ready={NOW}", f"Ready=tomorrow/{NOW}", f"Ready={NOW}/"]
)
def test_a_note_that_cannot_be_read_is_none(text):
    assert first_seen(replace(a_node(), annotations={FIRST_SEEN: text}), START) == {}
