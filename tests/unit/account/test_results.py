"""The table of steps, the Markdown block, and what counts as success."""

from datetime import UTC, datetime

import pytest

from account_test import table
from account_test.errors import NotServedError, StepError
from account_test.judge import Finding, unproven
from account_test.results import Difference, Outcome, Result, succeeded
from account_test.step import Step, carried_out
from tests.unit.account.builders import a_run

GOOD = Finding(promise="p", kept=True, found="all of it")
BAD = Finding(promise="no pod is lost", kept=False, found="web-1 in 111122223333 | blue")
KEPT = Result(name="scale-in", proves="x", findings=[GOOD], seconds=12.4)
BROKEN = Result(name="IAM", proves="x", findings=[GOOD, BAD], seconds=3)
NOT_RUN = Result(name="states", proves="x", why="states:TestState is not served here")


def test_a_step_without_a_finding_was_not_run_and_one_broken_promise_breaks_a_step():
    assert [one.outcome for one in (KEPT, BROKEN, NOT_RUN)] == [Outcome.KEPT, Outcome.BROKEN, Outcome.NOT_RUN]
    assert Result(name="x", proves="x", broken=True, why="it fell").outcome is Outcome.BROKEN


def test_a_run_of_which_nothing_was_run_has_not_succeeded():
    assert not succeeded([])
    assert not succeeded([NOT_RUN])
    assert not succeeded([KEPT, BROKEN])
    assert succeeded([KEPT, NOT_RUN])


def test_the_table_has_a_row_a_step_and_says_what_broke_and_why_something_was_not_run():
    text = table.plain([KEPT, BROKEN, NOT_RUN])
    rows = text.splitlines()
    assert rows[0].split() == ["STEP", "RESULT", "SECONDS", "WHAT"]
    assert rows[1].split()[:3] == ["scale-in", "kept", "12"]
    assert "broken" in rows[2]
    assert "no pod is lost: web-1" in rows[2]
    assert "not run" in rows[3]
    assert "states:TestState is not served here" in rows[3]
    assert f"  {table.NOTHING}" in rows
    assert table.counted([KEPT, BROKEN, NOT_RUN]) == "1 kept, 1 broken, 0 unproven, 1 not run"


def test_an_unproven_promise_is_no_success_and_is_named_in_the_last_lines():
    open_one = Result(name="launch rights", proves="x", findings=[GOOD, unproven("it launches", "not played")])
    assert open_one.outcome is Outcome.UNPROVEN
    assert not succeeded([open_one])
    assert succeeded([KEPT, open_one])
    assert "1 of 2 promises; unproven: it launches: not played" in table.plain([open_one])
    assert table.not_shown([KEPT, open_one]) == ["NOT PROVEN by this run: launch rights: it launches"]
    assert "| launch rights | unproven |" in table.markdown(a_run(), [open_one], datetime.now(UTC))


def test_a_broken_promise_beside_an_unproven_one_breaks_the_step():
    both = Result(name="x", proves="x", findings=[BAD, unproven("it launches", "not played")])
    assert both.outcome is Outcome.BROKEN
    assert "unproven: it launches" in both.sentence


def test_differences_and_figures_that_agree_are_distinguished():
    other = Difference(about="end of the spot instance", model="120 s", measured="95 s")
    same = Difference(about="LaunchInstances", model="raised", measured="raised by 1", same=True)
    text = table.plain([Result(name="spot", proves="x", findings=[GOOD], differences=[other, same])])
    first, second = text.split("As the model says:")
    assert "the model says 120 s, measured 95 s" in first
    assert "raised by 1" in second
    assert "raised by 1" not in first


def test_the_markdown_block_names_neither_account_nor_cluster_and_keeps_its_columns():
    block = table.markdown(a_run(), [BROKEN], datetime(2026, 1, 1, tzinfo=UTC))
    assert block.startswith("## 2026-01-01, eu-west-1, AWS\n")
    assert "111122223333" not in block
    assert "blue" not in block
    (row,) = [line for line in block.splitlines() if line.startswith("| IAM")]
    assert row.count("|") - row.count("\\|") == 5
    assert ", the local stack\n" in table.markdown(a_run(endpoint="http://x"), [], datetime.now(UTC))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NotServedError("fis is not served here"), Outcome.NOT_RUN),
        (StepError("no node joined"), Outcome.BROKEN),
        (KeyError("Role"), Outcome.BROKEN),
        (OSError("network"), Outcome.BROKEN),
    ],
)
def test_a_step_that_fails_is_a_row_of_the_table(error, outcome):
    def fail(_context, _recordings):
        raise error

    result = carried_out(Step(name="s", proves="p", run=fail), None, [])
    assert result.outcome is outcome
    assert str(error) in result.sentence


def test_an_interruption_ends_the_run():
    def fail(_context, _recordings):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carried_out(Step(name="s", proves="p", run=fail), None, [])
