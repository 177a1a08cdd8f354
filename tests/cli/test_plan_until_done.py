"""`leeward plan --until-done`: the document, its filters, and what is of a single run alone."""

import pytest

from tests.cli.command import NOON, SMALL
from tests.cli.test_golden import many, switched_off


@pytest.fixture
def ask(leeward, tmp_path):
    def run(*arguments, folder=many):
        return leeward("plan", "--until-done", "--snapshot", folder(tmp_path), "--now", NOON, *arguments)

    return run


def test_the_document_has_every_run_and_the_end(ask):
    result = ask("-o", "json")
    assert (result.code, result.err) == (0, "")
    document = result.json
    assert document["finished"] is True
    assert document["summary"]["nodes"] == {"now": 6, "after": 1}
    assert document["summary"]["pricePerMonth"] == {"now": 840.96, "after": 140.16}
    assert [(run["nodes"], run["afterSeconds"]) for run in document["runs"]] == [(4, 0), (2, 600), (1, 1200)]


def test_a_method_can_be_switched_on_for_it(ask):
    assert ask(folder=switched_off).out.splitlines()[1] == "nothing to do"
    shown = ask("--what-if", "consolidation", folder=switched_off)
    assert shown.out.splitlines()[1].startswith("when nothing is left to do, after 1 run: 1 node")


def test_the_names_are_the_nodes_that_leave(ask):
    assert ask("-o", "name").out.splitlines() == [f"node/n{number}" for number in (1, 2, 4, 5, 6)]


def test_one_group_can_be_asked_for(ask):
    document = ask("-o", "json", "--group", "batch").json
    assert (document["runs"], document["summary"]["nodes"]) == ([], {"now": 0, "after": 0})


@pytest.mark.parametrize("more", ["--pods", "--verbose", "--validate=plan.json", "--method=unhealthy"])
def test_what_a_single_run_alone_has_is_refused(leeward, more):
    said = leeward.refuses("plan", "--until-done", "--snapshot", SMALL, more)
    assert said.startswith(f"plan: found --until-done with {more.partition('=')[0]}")


def test_it_starts_no_run(leeward):
    assert "--until-done with --apply" in leeward.refuses("plan", "--until-done", "--apply", "--yes", "--cluster", "c")


def test_a_plan_of_one_run_names_it_where_later_runs_may_remove_more(leeward, tmp_path):
    folder = many(tmp_path)
    said = "that is one run: later ones may remove more nodes (--until-done plans them)"
    assert said in leeward("plan", "--snapshot", folder, "--now", NOON).out
    assert said not in leeward("plan", "--snapshot", switched_off(tmp_path / "off"), "--now", NOON).out
