"""Which node an event is about: the named one, or one that no other event has."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.interactive.notifications import line
from local.interactive.state import CLAIMS
from local.interactive.targets import CLAIM_SECONDS, NoTargetError, Request, Target, choose, release


def a_target(number, *, group="web-spot", spot=True, available=True):
    name = f"ip-10-40-0-{number}.ec2.internal"
    return Target(name=name, instance=f"i-{number}", group=group, zone="us-east-1a", spot=spot, available=available)


NODES = [a_target(number) for number in range(1, 6)]
ON_DEMAND = a_target(9, group="web-on-demand", spot=False)


@pytest.fixture
def directory(tmp_path):
    (tmp_path / CLAIMS).mkdir()
    return tmp_path


def test_events_of_the_same_moment_choose_different_nodes(directory):
    with ThreadPoolExecutor(5) as pool:
        chosen = list(pool.map(lambda _: choose(NODES, Request(), directory).instance, range(5)))
    assert sorted(chosen) == [target.instance for target in NODES]


def test_when_every_node_is_claimed_the_message_says_so(directory):
    for _ in NODES:
        choose(NODES, Request(), directory)
    with pytest.raises(NoTargetError, match="all 5 nodes that fit are being replaced"):
        choose(NODES, Request(), directory)


def test_a_node_that_is_in_service_again_may_be_chosen_again(directory):
    first = choose(NODES[:1], Request(), directory)
    release(directory, first)
    assert choose(NODES[:1], Request(), directory) == first


def test_a_claim_ends_by_itself(directory):
    first = choose(NODES[:1], Request(), directory)
    past = time.time() - CLAIM_SECONDS - 1
    os.utime(directory / CLAIMS / first.instance, (past, past))
    assert choose(NODES[:1], Request(), directory) == first


def test_a_node_that_is_leaving_is_not_chosen(directory):
    nodes = [a_target(1, available=False), a_target(2)]
    assert choose(nodes, Request(), directory).instance == "i-2"


@pytest.mark.parametrize("name", ["ip-10-40-0-3", "ip-10-40-0-3.ec2.internal", "node/ip-10-40-0-3", "i-3"])
def test_a_node_is_named_as_in_every_command(directory, name):
    assert choose(NODES, Request(node=name), directory).instance == "i-3"


def test_a_named_node_gets_the_event_although_it_has_one_already(directory):
    for _ in range(2):
        assert choose(NODES, Request(node="i-3"), directory).instance == "i-3"


def test_a_group_limits_the_choice(directory):
    assert choose([*NODES, ON_DEMAND], Request(group="web-on-demand"), directory) == ON_DEMAND


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request(node="ip-10-40-0-33"), r"NODE=ip-10-40-0-33: no such node.*did you mean ip-10-40-0-3\?"),
        (Request(group="web-sport"), r"GROUP=web-sport: no such group.*did you mean web-spot\?"),
        (Request(node="i-9", spot=True), r"NODE=ip-10-40-0-9 is no spot instance.*: ip-10-40-0-1, ip"),
        (Request(node="i-9", group="web-spot"), "NODE=ip-10-40-0-9 is of group web-on-demand, not of web-spot"),
        (Request(group="web-on-demand", spot=True), "GROUP=web-on-demand has no spot instance"),
    ],
)
def test_a_mistake_gets_one_sentence(directory, request_, message):
    with pytest.raises(NoTargetError, match=message):
        choose([*NODES, ON_DEMAND], request_, directory)


def test_a_notification_is_about_its_node_or_its_instance_before_its_group():
    detail = {"at": "t", "event": "E", "why": "w", "cluster": "demo", "group": "web", "node": None, "instance": "i-1"}
    assert [line(detail), line({**detail, "node": "n"})] == ["t E: i-1: w", "t E: n: w"]


def test_a_cluster_without_spot_instances_gets_no_spot_warning(directory):
    with pytest.raises(NoTargetError, match="the cluster has no spot instance"):
        choose([ON_DEMAND], Request(spot=True), directory)
