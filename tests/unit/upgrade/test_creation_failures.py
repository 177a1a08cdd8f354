"""When new nodes that do not come are a NodeCreationFailure."""

from datetime import timedelta

import pytest

from leeward.policy.document import ClusterSettings
from leeward.upgrade.failures import SEARCH, CreationCause, creation_failures
from leeward.upgrade.gate import Gate, Lack, Missing
from leeward.upgrade.observation import Observation
from leeward.upgrade.surge.orders import FULL
from tests.unit.upgrade.builders import NOON, a_node, a_policy, an_upgrade
from tests.unit.upgrade.waves.test_early_starts import TWO, a_record

NOTHING = Gate(missing=(Missing(lack=Lack.NO_NEW_NODE, object="a", message="a: there are old nodes and no new one"),))


@pytest.fixture
def observation():
    preflight = an_upgrade(a_node("o1"), policy=a_policy(TWO))
    return Observation(preflight=preflight, instances={}, settings=ClusterSettings(name="blue"))


@pytest.mark.parametrize(("searched", "fails"), [(SEARCH - timedelta(seconds=1), False), (SEARCH, True)])
def test_a_zone_is_searched_from_the_moment_when_preflight_waits_for_nothing_more(observation, searched, fails):
    """Another run may hold the group for longer than a search takes; then no zone has been tried yet."""
    record = a_record(began=NOON - timedelta(hours=2), sized=NOON - searched)
    assert bool(creation_failures(record, observation, NOTHING, NOON, exhausted=False)) is fails


@pytest.mark.parametrize(
    ("given", "cause", "says"),
    [
        ({}, CreationCause.NOT_REQUESTED, "a: no new node was requested: 0 were launched"),
        ({"others_seen": NOON}, CreationCause.NOT_REQUESTED, "others have changed the size of the group"),
        ({"short": {"b": "b: x"}, "refusal": "denied"}, CreationCause.LAUNCH_REFUSED, "LaunchRefused: denied"),
        ({"short": {"a": f"a: {FULL}"}}, CreationCause.NO_ADDRESSES, "no subnet of the group there"),
    ],
)
def test_nothing_is_guessed_about_a_zone_in_which_nothing_was_launched(observation, given, cause, says):
    record = a_record(began=NOON - timedelta(hours=2), sized=NOON - SEARCH, **given)
    (failure,) = creation_failures(record, observation, NOTHING, NOON, exhausted=False)
    assert failure.cause is cause
    assert says in failure.message


def test_where_the_desired_size_was_raised_the_zones_that_the_group_chose_are_named():
    preflight = an_upgrade(a_node("o1"), a_node("n1", "c"), new=("n1",), policy=a_policy(TWO))
    seen = Observation(preflight=preflight, instances={}, settings=ClusterSettings(name="blue"))
    record = a_record(began=NOON - SEARCH, refusal="AccessDenied: not authorized", wanted=2)
    (failure,) = creation_failures(record, seen, NOTHING, NOON, exhausted=False)
    assert "its desired size was raised, and the group launched in c" in failure.message
