"""What every `ports.records.Runs` does: the table's adapter on a local DynamoDB, the simulation's model, the fake.

Of the adapter also that what it writes fits."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.adapters.aws.workflow_records import DynamoDisruptions
from leeward.disruption.controller import commands_that_fit
from leeward.disruption.record import DisruptionOutcome, LaunchedNode
from leeward.model.codec import encode
from simulation.aws.disruptions import SimDisruptions
from tests.contract.tables import TABLES, a_table
from tests.fakes.disruptions import NOW, FakeDisruptions, a_disruption

LONG = "g" * 80


@pytest.fixture(params=[*TABLES, "the model", "the fake"])
def disruptions(request, monkeypatch):
    if request.param in TABLES:
        with a_table(monkeypatch, request.param) as table:
            yield DynamoDisruptions(table)
    else:
        yield SimDisruptions() if request.param == "the model" else FakeDisruptions()


def test_there_is_none_before_it_is_written(disruptions):
    assert disruptions.read("blue") is None


def test_a_record_comes_back_as_it_was_one_version_later(disruptions):
    written = disruptions.write(a_disruption())
    assert written == a_disruption(version=1)
    assert disruptions.read("blue") == written


def test_clusters_are_kept_apart(disruptions):
    disruptions.write(a_disruption())
    assert disruptions.read("green") is None
    assert disruptions.write(a_disruption(cluster="green")) is not None


def test_only_who_read_the_newest_version_writes(disruptions):
    first = disruptions.write(a_disruption())
    second = disruptions.write(replace(first, requested=True))
    assert second.version == 2
    assert disruptions.write(replace(first, launched={})) is None
    assert disruptions.read("blue") == second


def test_a_cluster_has_one_run_at_a_time(disruptions):
    first = disruptions.write(a_disruption())
    assert disruptions.write(a_disruption(number=4)) is None
    disruptions.write(first.closed(DisruptionOutcome.DONE, "done", NOW))
    assert disruptions.write(a_disruption(number=4)) == a_disruption(number=4, version=1)


def test_a_writer_of_an_earlier_run_does_not_meet_the_same_version_of_a_later_one(disruptions):
    first = disruptions.write(a_disruption())
    disruptions.write(first.closed(DisruptionOutcome.GIVEN_UP, "the world moved", NOW))
    later = disruptions.write(a_disruption(number=4))
    assert disruptions.write(replace(first, requested=True)) is None
    assert disruptions.read("blue") == later


def test_an_ended_run_says_its_outcome_and_since_when_its_groups_are_in_cooldown(disruptions):
    disruptions.write(disruptions.write(a_disruption()).closed(DisruptionOutcome.GIVEN_UP, "the world moved", NOW))
    found = disruptions.read("blue")
    assert (found.outcome, found.ended, found.why) == (DisruptionOutcome.GIVEN_UP, NOW, "the world moved")
    assert found.cooldowns == {"web-a": NOW, "web-b": NOW, "web-c": NOW - timedelta(minutes=3)}


@pytest.mark.parametrize("types", [1, 15, 300])
def test_the_largest_run_fits_into_an_item_of_the_table(types):
    """400 KB at the most (DynamoDB, quotas): names and values, here with all the marks of JSON."""
    one = a_disruption().commands[0]
    names = [f"ip-10-100-{number:06d}.ap-northeast-1.compute.internal" for number in range(1000)]
    offered = tuple(f"m{number}gd.metal-48xl" for number in range(types))
    coming = replace(one.replacements[0], types=offered, group=LONG)
    asked = [replace(one, nodes=(name,), replacements=(coming,), reason="r" * 120) for name in names]
    commands = tuple(commands_that_fit(asked))
    names = [name for command in commands for name in command.nodes]
    new = [f"i-{number:017x}" for number in range(len(names))]
    full = a_disruption(
        commands=commands,
        nodes=dict(zip(names, new, strict=True)),
        members=dict.fromkeys(names, LONG),
        launched={
            name: LaunchedNode(
                command=number, replacement=0, group=LONG, zone="ap-northeast-1a", subnet="subnet-0123456789abcdef0"
            )
            for number, name in enumerate(new)
        },
        ends=dict.fromkeys(new, "stayed"),
    )
    assert 200_000 < len(json.dumps(encode(full))) < 400_000


def test_of_a_set_of_empty_nodes_as_many_are_taken_as_fit():
    command = replace(a_disruption().commands[1], nodes=tuple(f"node-{number}" for number in range(1000)))
    (taken,) = commands_that_fit([command])
    assert 300 < len(taken.nodes) < 1000
    assert taken.nodes == command.nodes[: len(taken.nodes)]
