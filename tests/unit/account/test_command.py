"""The command: what it says before it begins, and that nothing is made without a yes."""

import signal

import pytest

from account_test import __main__ as command
from account_test import preflight
from tests.unit.account.builders import a_run


@pytest.fixture(autouse=True)
def _signals():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def begun(monkeypatch):
    """The runs that were begun, on a terminal where the answer is `answer`."""
    runs, answers = [], {"tty": True, "answer": "yes"}
    monkeypatch.setattr(command, "planned", lambda options: (a_run(), None, None, None))
    monkeypatch.setattr(preflight, "check", lambda run, aws, kube, instances: ["a note"])
    monkeypatch.setattr(command, "perform", lambda run, *_: runs.append(run) or 0)
    monkeypatch.setattr("sys.stdin.isatty", lambda: answers["tty"], raising=False)
    monkeypatch.setattr("builtins.input", lambda _: answers["answer"])
    return runs, answers


def test_its_help_says_what_it_creates_costs_and_removes(capsys):
    with pytest.raises(SystemExit):
        command.main(["--help"])
    text = capsys.readouterr().out
    for words in (
        "about $1",
        "about an hour",
        "It creates one CloudFormation stack",
        "Everything is removed",
        "--remove",
    ):
        assert words in text


def test_before_it_begins_it_says_where_and_what_and_asks(begun, capsys):
    runs, _ = begun
    assert command.main(["--cluster", "blue"]) == 0
    assert len(runs) == 1
    text = capsys.readouterr().out
    for words in (
        "account 111122223333",
        "Region eu-west-1",
        "cluster blue",
        "about $1",
        "removes everything",
        "a note",
    ):
        assert words in text


@pytest.mark.parametrize("answer", ["no", "", "y", "yes please"])
def test_anything_but_yes_makes_nothing(begun, capsys, answer):
    runs, answers = begun
    answers["answer"] = answer
    assert command.main(["--cluster", "blue"]) == 2
    assert runs == []
    assert "nothing was made" in capsys.readouterr().out


def test_without_a_terminal_it_needs_the_option(begun, capsys):
    runs, answers = begun
    answers["tty"] = False
    assert command.main(["--cluster", "blue"]) == 2
    assert "Fix: --yes" in capsys.readouterr().err
    assert command.main(["--cluster", "blue", "--yes"]) == 0
    assert len(runs) == 1


def test_without_a_cluster_it_asks_which(capsys):
    assert command.main([]) == 2
    assert "which cluster? --cluster NAME" in capsys.readouterr().err


def test_an_unknown_run_cannot_be_removed(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("account_test.run.FOLDER", tmp_path)
    assert command.main(["--remove", "0absent"]) == 2
    assert "found no journal" in capsys.readouterr().err
