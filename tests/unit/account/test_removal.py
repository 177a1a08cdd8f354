"""Whatever stops a run, all that its journal names is removed, and what cannot be is reported with its command."""

import json
import os
import signal

import pytest

from account_test import removal
from account_test.aws import Aws
from account_test.errors import AccountTestError
from account_test.journal import Journal
from account_test.removal import RemovalInterruptedError, Remover, remove_all
from tests.unit.account.builders import a_run

THINGS = [
    ("role", "test-0abc12-node"),
    ("queue", "test-0abc12-tap"),
    ("stack", "test-0abc12-Leeward"),
    ("launch-template", "test-0abc12-thin"),
    ("auto-scaling-group", "test-0abc12-thin"),
]


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


class World(Remover):
    """An account in a set. `refused`: things that it does not remove."""

    def __init__(self):
        super().__init__(aws=Aws("eu-west-1"), kube=None)
        self.there, self.refused, self.order = set(), set(), []

    def make(self, journal, kind, name, *, killed=""):
        made = journal.making(kind, name)
        if killed == "before":
            raise Killed
        self.there.add(str(made))
        if killed == "after":
            raise Killed

    def remove(self, made):
        if str(made) in self.refused:
            raise AccountTestError("AWS says no")
        self.order.append(str(made))
        self.there.discard(str(made))


@pytest.fixture
def journal(tmp_path, monkeypatch):
    monkeypatch.setattr("account_test.run.FOLDER", tmp_path)
    run = a_run()
    return Journal(run, run.journal)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", range(len(THINGS)))
def test_killed_at_any_step_everything_that_is_there_is_removed_by_the_next_process(journal, step, moment):
    world = World()
    for kind, name in THINGS[:step]:
        world.make(journal, kind, name)
    with pytest.raises(Killed):
        world.make(journal, *THINGS[step], killed=moment)
    later = Journal.load(journal.run.id)
    assert remove_all(later, world, lambda _: None) == []
    assert world.there == set()
    assert Journal.load(journal.run.id).left == []


def test_what_was_made_last_goes_first(journal):
    world = World()
    for kind, name in THINGS:
        world.make(journal, kind, name)
    remove_all(journal, world, lambda _: None)
    assert world.order == [f"{kind} {name}" for kind, name in reversed(THINGS)]


def test_a_thing_that_cannot_be_removed_stays_in_the_journal_and_keeps_no_other(journal):
    world, said = World(), []
    for kind, name in THINGS:
        world.make(journal, kind, name)
    world.refused = {"queue test-0abc12-tap"}
    (left,) = remove_all(journal, world, said.append)
    assert (str(left.made), left.reason) == ("queue test-0abc12-tap", "AWS says no")
    assert world.there == world.refused
    assert any("LEFT: queue test-0abc12-tap: AWS says no" in line and "aws sqs delete-queue" in line for line in said)
    assert any("REMOVE=0abc12" in line for line in said)
    world.refused = set()
    assert remove_all(Journal.load("0abc12"), world, said.append) == []
    assert world.there == set()


def test_removed_twice_is_removed_once(journal):
    world = World()
    world.make(journal, "role", "r")
    (made,) = journal.left
    world.remove(made)  # and the process ends before the journal knows
    assert remove_all(Journal.load("0abc12"), world, lambda _: None) == []


def test_one_ctrl_c_during_the_removal_is_answered_and_a_second_one_says_what_is_left(journal):
    said = []

    class Interrupted(World):
        def remove(self, made):
            if len(self.order) in self.presses:
                os.kill(os.getpid(), signal.SIGINT)
            super().remove(made)

    before = signal.getsignal(signal.SIGINT)
    world = Interrupted()
    world.presses = {1}
    for kind, name in THINGS:
        world.make(journal, kind, name)
    assert remove_all(journal, world, said.append) == []
    assert any("the removal goes on" in line for line in said)

    said.clear()
    for kind, name in THINGS:
        world.make(journal, kind, name)
    world.order, world.presses = [], {1, 2}
    with pytest.raises(RemovalInterruptedError):
        remove_all(journal, world, said.append)
    left = [line for line in said if line.startswith("LEFT")]
    assert len(left) == len(Journal.load("0abc12").left) == 3
    assert any("REMOVE=0abc12" in line for line in said)
    assert signal.getsignal(signal.SIGINT) is before


def test_every_kind_can_be_removed_and_has_a_command():
    assert set(removal._KINDS) == set(removal._COMMANDS)


def test_the_journal_is_written_before_the_thing_is_made_and_read_back_whole(journal):
    made = journal.making("access-entry", "arn:aws:iam::111122223333:role/r", cluster="blue")
    again = Journal.load("0abc12")
    assert again.left == [made]
    assert again.run == journal.run
    journal.making("access-entry", "arn:aws:iam::111122223333:role/r", cluster="blue")
    assert len(journal.left) == 1
    assert World().command(made) == (
        "aws eks delete-access-entry --cluster-name blue --principal-arn arn:aws:iam::111122223333:role/r "
        "--region eu-west-1"
    )


def test_a_journal_that_is_not_there_or_none_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("account_test.run.FOLDER", tmp_path)
    with pytest.raises(AccountTestError, match="found no journal"):
        Journal.load("absent")
    (tmp_path / "half.json").write_text(json.dumps({"run": {}}))
    with pytest.raises(AccountTestError, match="expected the journal of a run"):
        Journal.load("half")
