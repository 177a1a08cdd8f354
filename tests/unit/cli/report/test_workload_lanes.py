"""Lanes of workloads of an execution, from the samples in the outputs of its steps and of its terminations."""

from leeward.budgets.healthy_pods import HealthSample, to_json
from leeward.cli.report.building import NO_WORKLOADS, OBSERVED, build
from leeward.cli.report.facts import Story
from leeward.cli.report.page import page
from leeward.cli.report.record import RunRecord
from leeward.cli.report.workload_lanes import merged_lanes
from leeward.model.execution import Machine
from tests.unit.cli.report.execution import OLD, OTHER, a_step, a_story, an_execution, at, facts_of


def a_look(seconds, healthy, *, budget="shop/web", minimum=2, expected=3, state="Drain"):
    sample = HealthSample(at=at(seconds), workload=budget, healthy=healthy, minimum=minimum, expected=expected)
    return a_step(state, seconds, seconds + 1, next="wait", why="waits", healthy=to_json([sample]))


def ready(lane):
    return [((sample.at - at(0)).total_seconds(), sample.ready) for sample in lane.samples]


def test_a_lane_has_each_change_and_ends_with_the_last_look():
    steps = [*a_story(), a_look(12, 3), a_look(14, 2), a_look(20, 2), a_look(26, 2)]
    (lane,) = build(facts_of(steps=steps)).workloads
    assert (lane.name, lane.desired, lane.minimum) == ("shop/web", 3, 2)
    assert ready(lane) == [(12, 3), (14, 2)]
    assert (lane.until, lane.lowest, lane.under) == (at(26), 2, frozenset())


def test_a_pause_that_passes_its_input_on_adds_nothing():
    look = a_look(12, 2)
    paused = a_step("WaitForPods", 13, 30, **look.output)
    (lane,) = build(facts_of(steps=[*a_story(), look, paused])).workloads
    assert ready(lane) == [(12, 2)]
    assert lane.until == at(12)


def test_an_upgrade_and_its_terminations_share_a_lane_for_each_budget():
    upgrade = an_execution(Machine.UPGRADE, "web-a-1")
    own = [a_look(5, 3, state="DrainOldNodes"), a_look(30, 2, state="DrainOldNodes")]
    stories = {
        OLD: (Story(attempt=1, steps=[a_look(10, 2), a_look(11, 1, budget="shop/api", minimum=1)]),),
        OTHER: (Story(attempt=1, steps=[a_look(20, 3)]),),
    }
    lanes = build(facts_of(upgrade, own, stories=stories)).workloads
    assert {lane.name: ready(lane) for lane in lanes} == {
        "shop/api": [(11, 1)],
        "shop/web": [(5, 3), (10, 2), (20, 3), (30, 2)],
    }


def test_what_was_seen_below_the_minimum_counts_although_the_workload_was_never_seen_complete():
    (lane,) = build(facts_of(steps=[*a_story(), a_look(12, 1)])).workloads
    assert (lane.lowest, lane.under) == (1, frozenset({at(12)}))


def test_the_page_says_what_the_lanes_are_or_why_there_are_none():
    assert NO_WORKLOADS in build(facts_of()).notes
    seen = build(facts_of(steps=[*a_story(), a_look(12, 3), a_look(30, 2)]))
    assert OBSERVED in seen.notes
    assert NO_WORKLOADS not in seen.notes
    assert RunRecord.from_json(seen.to_json()) == seen


def test_a_lane_that_was_alike_at_every_look_claims_nothing_about_the_time_between():
    text = page(build(facts_of(steps=[*a_story(), a_look(12, 2), a_look(30, 2)])))
    assert "2 of 3 at every look · PDB minimum 2" in text
    assert "throughout" not in text


def test_lanes_of_several_executions_become_one():
    first, second, other = (
        build(facts_of(steps=[*a_story(), *looks])).workloads[0]
        for looks in ([a_look(12, 3), a_look(20, 2)], [a_look(15, 1, expected=5)], [a_look(9, 1, budget="shop/api")])
    )
    api, web = merged_lanes([first, second, other])
    assert (api, web.name, web.until, web.desired) == (other, "shop/web", at(20), 3)
    assert ready(web) == [(12, 3), (15, 1), (20, 2)]


def test_after_the_last_look_nothing_is_drawn():
    record = build(facts_of(steps=[*a_story(), a_look(12, 3), a_look(30, 2)]))
    text = page(record)
    area = text.partition('class="lane workload"')[2].partition("</div></div>")[0]
    rights = [
        float(part.partition('x2="')[2].partition("%")[0])
        for part in area.partition('class="step"')[2].split("<line")[1:3]
    ]
    assert max(rights) < 100 * 34 / 102
