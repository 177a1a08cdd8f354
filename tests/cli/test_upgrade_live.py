"""`leeward upgrade start|pause|resume|abort|rollback --cluster`: executions and wishes, said once or twice."""

import json
from dataclasses import replace

import pytest

from leeward.cli import upgrade, upgrade_live
from leeward.errors import InvalidInputError
from leeward.model.launch import LaunchSource, LaunchTemplateRef
from leeward.upgrade.members import Target
from leeward.upgrade.record import UpgradeRecord, Wish
from leeward.upgrade.sizes import Strategy
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, an_instance
from tests.fakes.system import FakeSystem

TEMPLATE = LaunchTemplateRef(id=f"lt-{GROUP}", name=GROUP, version="1")


@pytest.fixture
def system(monkeypatch):
    group = replace(a_group(GROUP, "i-0abc"), launch=LaunchSource(template=TEMPLATE))
    found = FakeSystem(instances=[an_instance()], groups=[group], nodes=[a_node()])
    monkeypatch.setattr(upgrade, "live_ports", lambda arguments: found.ports)
    return found


@pytest.fixture
def say(leeward, system):
    def run(*arguments):
        result = leeward("upgrade", *arguments, "--cluster", CLUSTER, "-o", "json")
        assert result.code == 0, result.err
        return json.loads(result.out)

    return run


def a_record(system, **more):
    target = Target(template=replace(TEMPLATE, version="2"))
    record = UpgradeRecord(
        group=GROUP,
        cluster=CLUSTER,
        target=target,
        previous=Target(template=TEMPLATE),
        strategy=Strategy.DEFAULT,
        desired=1,
        maximum=10,
        began=system.clock.now(),
        attempt=1,
        execution=f"{GROUP}-1",
        **more,
    )
    system.upgrades.write(record)


def test_a_start_begins_an_execution_with_what_was_asked(say, system):
    assert say("start", GROUP, "--ami", "ami-0123456789abcdef0", "--force")["execution"] == f"{GROUP}-1"
    ((name, document),) = system.upgrade_executions.started
    assert name == f"{GROUP}-1"
    assert document == {"group": GROUP, "cluster": CLUSTER, "ami": "ami-0123456789abcdef0", "force": True}


def test_a_second_start_names_what_runs(say, system):
    a_record(system)
    system.upgrade_executions.open.add(f"{GROUP}-1")
    assert say("start", GROUP)["said"] == "it runs already"
    assert not system.upgrade_executions.started


def test_a_start_after_a_failure_takes_the_next_free_name(say, system):
    a_record(system, error="PodEvictionFailure: pods", ended=system.clock.now())
    system.upgrade_executions.closed |= {f"{GROUP}-1", f"{GROUP}-2"}
    assert say("start", GROUP)["execution"] == f"{GROUP}-3"


@pytest.mark.parametrize(
    ("action", "wish"),
    [("pause", Wish.PAUSE), ("abort", Wish.ABORT), ("rollback", Wish.ROLLBACK), ("resume", Wish.RUN)],
)
def test_a_wish_is_written_down_for_whoever_runs_it(say, system, action, wish):
    a_record(system)
    system.upgrade_executions.open.add(f"{GROUP}-1")
    assert say(action, GROUP) == say(action, GROUP), "said twice it is the same"
    assert system.upgrades.records[GROUP].wish is wish
    assert not system.upgrade_executions.started


@pytest.mark.parametrize("action", ["abort", "rollback", "resume"])
def test_where_nothing_runs_an_execution_is_begun_for_it(say, system, action):
    a_record(system)
    system.upgrade_executions.closed.add(f"{GROUP}-1")
    assert say(action, GROUP)["execution"] == f"{GROUP}-2"


def test_a_wish_without_an_upgrade_is_refused(leeward, system):
    result = leeward("upgrade", "pause", GROUP, "--cluster", CLUSTER)
    assert result.code == 2
    assert "found none, expected one to pause" in result.err


def test_the_status_is_that_of_the_record_and_the_world(say, system):
    assert say("status", GROUP)["phase"] == "not-started"
    a_record(system, wish=Wish.PAUSE)
    found = say("status", GROUP)
    assert (found["phase"], found["nodes"]["old"]) == ("paused", 1)


def test_a_snapshot_cannot_be_told_anything(leeward, tmp_path):
    result = leeward("upgrade", "start", GROUP, "--snapshot", tmp_path)
    assert result.code == 2
    assert "it is live alone" in result.err


def test_without_a_cluster_nothing_is_asked():
    class Given:
        action, cluster = "start", None

    with pytest.raises(InvalidInputError, match="found no --cluster"):
        upgrade_live.live_ports(Given())
