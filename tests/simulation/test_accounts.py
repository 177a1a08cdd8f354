"""Worlds in which the second cluster is in another account and Region: what each account knows, and which rules notice
it."""

import json
from dataclasses import fields
from functools import partial

import pytest

from leeward.errors import AccessDeniedError, InvalidInputError
from leeward.model.termination import Cause, CauseKind
from leeward.ports import AwsPorts
from simulation.account_rules import AccountRules
from simulation.account_troubles import Refusals, Strangers
from simulation.accounts import CACHED, MEMBER_ACCOUNT, MEMBER_REGION, OF_THE_TABLE
from simulation.aws import events
from simulation.aws.recovery import zone_id_of
from simulation.case import Case
from simulation.features import Feature
from simulation.rule import Rule
from tests.fakes.builders import a_subject
from tests.simulation.second_cluster_stand_in import a_world_of_two

SEED = 3
CALLS = {
    "instances": "describe",
    "network": "subnets",
    "price_list": "on_demand",
    "launches": "settings",
    "groups": "describe",
    "load_balancers": "targets",
    "group_changes": "suspend",
    "templates": "numbered",
    "managed_updates": "look",
    "service_limits": "images",
    "alarms": "describe",
    "recovery": "shifts",
}
"""A call of each port that acts with the account's role."""


several_accounts = partial(a_world_of_two, Feature.ACCOUNTS)


@pytest.fixture
def world():
    """Two accounts with their nodes, in which no function runs and nothing arrives."""
    found = several_accounts()
    found._populate()
    return found


@pytest.fixture
def rules(world):
    return AccountRules(world)


def broken(rules):
    return [rule for rule, _ in rules.check()]


def serving(site):
    return next(iter(site.fleet.instances.values()))


def at(world, cluster):
    return world.system.ports.of_cluster(cluster)


def test_the_first_cluster_is_what_it_is_without_the_second_and_the_second_is_in_another_region():
    alone = Case(seed=SEED, hours=1, per_hour=30, nodes=6).world()
    blue, green = several_accounts().sites
    assert {name: group.plan for name, group in alone.fleet.groups.items()} == {
        name: group.plan for name, group in blue.fleet.groups.items()
    }
    assert {zone[:-1] for group in green.fleet.groups.values() for zone in group.plan.zones} == {MEMBER_REGION}
    assert "us-east-1" not in json.dumps(green.plan.workloads)
    assert (blue.account, green.account) == ((events.ACCOUNT, events.REGION), (MEMBER_ACCOUNT, MEMBER_REGION))


def test_a_world_of_two_clusters_in_one_account_has_no_places():
    found = Case(seed=SEED, hours=1, per_hour=30, nodes=6, features=(Feature.TWO_CLUSTERS,), arrivals=()).world()
    assert found.system.ports.places == ()
    assert [account.clusters for account in found.accounts.of] == [("blue", "green")]


def test_ports_act_in_no_account_before_a_cluster_is_named(world):
    with pytest.raises(InvalidInputError, match="found no cluster"):
        world.system.ports.groups.describe(["app"])
    assert {place.clusters for place in world.system.ports.places} == {("blue",), ("green",)}


def test_each_account_has_its_own_instances_groups_and_subnets_alone(world, rules):
    for site in world.sites:
        ports, ids = at(world, site.cluster_name), list(world.fleet.instances)
        assert set(ports.instances.describe(ids)) == set(site.fleet.instances)
        assert set(ports.groups.describe(list(world.fleet.groups))) == set(site.fleet.groups)
        subnets = [subnet for one in world.fleet.groups.values() for subnet in one.described().subnets]
        assert {subnet.zone for subnet in ports.network.subnets(subnets).values()} == {
            zone for group in site.fleet.groups.values() for zone in group.plan.zones
        }
    assert set(broken(rules)) == {Rule.ACCOUNT}


def test_answers_about_every_instance_name_those_of_the_account_alone(world, rules):
    blue, green = (serving(site) for site in world.sites)
    for member in (blue, green):
        member.impaired = world.now
        world.fleet.notices.capacity_block([member], world.now + 7200, warns=False)
    for cluster, member in (("blue", blue), ("green", green)):
        instances = at(world, cluster).instances
        assert set(instances.impaired()) == {member.id}
        assert set(instances.block_ends()) == {member.reservation}
    assert broken(rules) == []


def test_a_change_in_the_wrong_account_is_refused_and_noticed(world, rules):
    group = next(iter(world.sites[1].fleet.groups.values()))
    desired = group.desired
    with pytest.raises(InvalidInputError, match=f"account {events.ACCOUNT} has no {group.name}"):
        at(world, "blue").group_changes.raise_to(group.name, desired=desired + 1)
    assert group.desired == desired
    noticed = f"group_changes.raise_to in {events.ACCOUNT} names {group.name}, which is green's"
    assert [text for _, text in rules.check()] == [noticed]


def test_a_change_where_the_group_is_breaks_no_rule(world, rules):
    group = next(iter(world.sites[1].fleet.groups.values()))
    at(world, "green").group_changes.suspend(group.name, "AZRebalance")
    assert "AZRebalance" in group.suspended
    assert broken(rules) == []


@pytest.mark.parametrize("named", [True, False])
def test_an_instance_that_an_operator_names_without_its_cluster_is_looked_up_everywhere(world, rules, named):
    member = serving(world.sites[1])
    if named:
        world.started_manually.add(member.id)
    at(world, "blue").instances.describe([member.id])
    assert broken(rules) == ([] if named else [Rule.ACCOUNT])
    at(world, "blue").groups.lifecycle_of("i-0123456789abcdef0")
    assert broken(rules) == []


def test_events_carry_the_account_and_region_of_what_they_name(world):
    sent = []
    world.bus.emit = sent.append
    for site in world.sites:
        member = serving(site)
        site.fleet.notices.spot_warning(member)
        site.fleet.notices.maintenance(member, world.now + 3600)
        site.fleet.notices.zonal_shift("Autoshift In Progress", zone_id_of(member.zone))
    assert [(event["account"], event["region"]) for event in sent] == [
        place for site in world.sites for place in [site.account] * 3
    ]
    health = [event["detail"]["affectedAccount"] for event in sent if event["source"] == "aws.health"]
    assert health == [site.account[0] for site in world.sites]


@pytest.mark.parametrize("joins", [True, False])
def test_a_message_that_acts_in_an_account_that_has_not_sent_it_is_noticed(world, rules, joins):
    member, now = serving(world.sites[1]), world.timeline.instant()
    warning = events.spot_warning("event-1", member.id, now)  # in the hub's name
    world.queue.acknowledged.append(("m-1", json.dumps(warning)))
    if joins:
        cause = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=now)
        world.claims.claim(a_subject(member.id), cause, now)
    assert broken(rules) == ([Rule.SENDER] if joins else [])


def test_a_message_of_the_instance_s_own_account_may_act(world, rules):
    member, now = serving(world.sites[1]), world.timeline.instant()
    warning = world.accounts.addressed(events.spot_warning("event-1", member.id, now))
    world.queue.acknowledged.append(("m-1", json.dumps(warning)))
    world.claims.claim(a_subject(member.id), Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=now), now)
    assert broken(rules) == []


def players(world, kind):
    return [player for player in world._players if isinstance(player, kind)]


def test_every_port_acts_with_the_account_s_role_but_those_of_the_table_and_a_cache():
    assert {field.name for field in fields(AwsPorts)} == {*CALLS, *OF_THE_TABLE, *CACHED}


def test_a_refusing_account_reaches_neither_aws_nor_its_cluster_and_no_other_account_is_touched(world):
    (refusals,) = players(world, Refusals)
    refusals._refuse()
    for port, method in CALLS.items():
        with pytest.raises(AccessDeniedError, match="sts:AssumeRole"):
            getattr(getattr(at(world, "green"), port), method)()
    assert [site.troubled(0) for site in world.sites] == [False, True]
    assert at(world, "blue").groups.of_clusters(["blue"])
    refusals.over = True
    assert at(world, "green").groups.of_clusters(["green"])


def test_the_clusters_of_an_account_that_never_refuses_are_judged_as_without_it(world):
    blue, green = world.sites
    assert (blue.only_kubernetes_fails, blue.faultless) == (True, True)
    assert (green.only_kubernetes_fails, green.faultless) == (False, False)


def test_strangers_send_messages_about_instances_of_the_other_account(world):
    (strangers,) = players(world, Strangers)
    sent = []
    strangers._emit = sent.append
    member, now = serving(world.sites[0]), world.timeline.instant()
    world.claims.claim(a_subject(member.id), Cause(id="c", kind=CauseKind.MANUAL, at=now), now)
    for _ in range(40):
        strangers._speak()
    assert {event["detail-type"] for event in sent} >= {events.SPOT_WARNING}
    for event in sent:
        instance = event["detail"].get("instance-id") or event["detail"]["EC2InstanceId"]
        home = world.accounts.account_of(world.accounts.cluster_of(instance))
        assert event["account"] != home.account
        assert instance in world.accounts.named_by_strangers


def test_records_executions_and_nodes_of_both_accounts_go_through_one_deployment():
    found = several_accounts(seed=5, arrivals=None, disruption=True)
    outcome = found.run(0.5)
    assert [str(one) for one in outcome.violations] == []
    assert outcome.unexpected == ()
    assert outcome.faults["AssumeRole refused"] > 0
    assert {found.accounts.cluster_of(instance) for instance in found.claims.records} == {"blue", "green"}
    assert {*found.disruptions} == {"blue", "green"}
    assert all(site.evictions for site in found.sites)
