"""Upgrades of one policy that decide at one moment: its budget for Upgrade holds, and at least one proceeds on (X9)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.cluster.facets import Known
from leeward.model.termination import Cause, CauseKind
from leeward.policy.document import Budget, DisruptionPolicy, GroupSelector, UpdatePolicy
from leeward.termination.capacity_ledger import surplus
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import OpenLaunch, UpgradeRecord, cause_id
from leeward.upgrade.surge.sizes import Strategy
from leeward.upgrade.waves.shared_budgets import OtherTerminations, still_allowed, terminating_elsewhere
from tests.fakes.builders import a_subject
from tests.fakes.ledger import a_surge
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.builders import NEW, NOON, a_group, a_node, a_pod, a_policy, an_instance, an_upgrade, template

EARLIER, LATER = NOON - timedelta(minutes=1), NOON + timedelta(minutes=1)
ONE = Budget(nodes=1, percent=False, reasons=("Upgrade",))


@pytest.fixture
def system():
    return FakeSystem()


def shared(*budgets):
    """Groups web (o1) and other (x1) under one policy, each node with a pod."""
    rules = DisruptionPolicy(budgets=budgets)
    policy = replace(a_policy(UpdatePolicy(max_unavailable=2), disruption=rules), selector=GroupSelector(groups=("*",)))
    found = an_upgrade(a_node("o1"), policy=policy, pods=(a_pod("p", "o1"), a_pod("q", "x1")))
    groups = {**found.snapshot.groups, "other": a_group(an_instance("x1"), name="other")}
    nodes = Known((*found.snapshot.nodes, a_node("x1")))
    return replace(found, snapshot=replace(found.snapshot, groups=groups, node_list=nodes))


def an_upgrade_of(group, old, *, began=NOON, **fields):
    given = {"target": UpgradeTarget(template=template(NEW)), "strategy": Strategy.DEFAULT, "desired": 1, "maximum": 4}
    return UpgradeRecord(
        group=group, cluster="blue", began=began, execution=group, under_way=dict.fromkeys(old, "t"), **given, **fields
    )


def ours(system, **fields):
    return system.upgrades.write(an_upgrade_of("web", ["i-o1"], ahead={"i-n1": OpenLaunch(offset_by="i-o1")}, **fields))


def theirs(system, began, *, works=True):
    if works:
        system.upgrade_executions.open.add("other")
    system.upgrades.write(an_upgrade_of("other", ["i-x1"], began=began))


def decided(system, record, *budgets):
    """(to request, under way, offsets)."""
    done, requested = still_allowed(record, ["i-o1"], shared(*budgets), system.ports)
    assert system.upgrades.read("web") == done
    return requested, list(done.under_way), {new: surge.offset_by for new, surge in done.ahead.items()}


def test_where_no_other_node_drains_the_termination_is_requested(system):
    assert decided(system, ours(system), ONE) == (["i-o1"], ["i-o1"], {"i-n1": "i-o1"})


def test_who_began_later_takes_back_what_he_wrote(system):
    theirs(system, EARLIER)
    assert decided(system, ours(system), ONE) == ([], [], {"i-n1": None})


def test_who_began_earlier_keeps_it_and_waits(system):
    theirs(system, LATER)
    assert decided(system, ours(system), ONE) == ([], ["i-o1"], {"i-n1": "i-o1"})


@pytest.mark.parametrize(("times", "requested"), [({}, []), ({"drained": NOON}, ["i-o1"])])
def test_what_was_recorded_beside_a_surplus_that_was_claimed_since_is_taken_back(system, times, requested):
    """maxUnavailable is 1; the surplus has a pod, and is not tainted yet."""
    record = ours(system)
    system.claims.claim(a_subject("i-s1"), surplus(a_surge("i-0new"), NOON), NOON)
    system.claims.note("i-s1", times=times)
    policy = a_policy(UpdatePolicy(max_unavailable=1))
    pods = (a_pod("p", "o1"), a_pod("q", "s1"))
    preflight = an_upgrade(a_node("o1"), a_node("s1"), new=("s1",), policy=policy, pods=pods)
    done, unrequested = still_allowed(record, ["i-o1"], preflight, system.ports)
    assert (unrequested, list(done.under_way)) == (requested, requested)


def test_a_surplus_of_the_policys_other_group_holds_their_budget(system):
    record = ours(system)
    subject = replace(a_subject("i-x1"), group="other")
    system.claims.claim(subject, surplus(a_surge("i-0new"), NOON), NOON)
    assert decided(system, record, ONE) == ([], [], {"i-n1": None})


def test_a_budget_that_allows_both_delays_neither(system):
    theirs(system, EARLIER)
    assert decided(system, ours(system), replace(ONE, nodes=2))[0] == ["i-o1"]


def test_the_budget_of_a_zone_is_shared_as_well(system):
    theirs(system, EARLIER)
    assert decided(system, ours(system), replace(ONE, zone="a")) == ([], [], {"i-n1": None})
    assert decided(system, ours(system, version=2), replace(ONE, zone="b"))[0] == ["i-o1"]


def test_a_termination_requested_in_part_is_requested_wholly(system):
    theirs(system, EARLIER)
    record = ours(system)
    cause = Cause(id=cause_id(record, "i-o1"), kind=CauseKind.UPGRADE, at=NOON, reason="upgrade")
    system.claims.claim(a_subject("i-o1", group="web"), cause, NOON)
    assert decided(system, record, ONE) == (["i-o1"], ["i-o1"], {"i-n1": "i-o1"})


def test_without_a_budget_for_upgrades_no_other_record_is_read(system):
    theirs(system, EARLIER)
    record = ours(system)
    system.upgrades.fail("read", RuntimeError("asked"))
    done, requested = still_allowed(record, ["i-o1"], shared(Budget(nodes=1, percent=False)), system.ports)
    assert (requested, done) == (["i-o1"], record)


def test_an_upgrade_without_an_execution_counts_only_requested_terminations(system):
    theirs(system, EARLIER, works=False)
    record = an_upgrade_of("web", [])
    assert terminating_elsewhere(record, ["other"], system.ports) == OtherTerminations()
    cause = Cause(id="x", kind=CauseKind.UPGRADE, at=NOON, reason="upgrade")
    system.claims.claim(a_subject("i-x1", group="other"), cause, NOON)
    assert terminating_elsewhere(record, ["other"], system.ports) == OtherTerminations(before=frozenset({"i-x1"}))
