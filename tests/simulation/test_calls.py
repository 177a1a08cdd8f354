"""How often AWS and the API server are asked for one terminated node, in a world in which nothing goes wrong."""

import pytest

from bench.calls import MOST_DESCRIBES, MOST_IDLE, MOST_LISTS, MOST_TABLE_CALLS, missed
from bench.calls_worlds import disruption, idle_hour, scale_in, spot_warning, upgrade


@pytest.fixture(scope="module", params=[spot_warning, scale_in], ids=["spot warning", "scale-in"])
def scene(request):
    return request.param()


def test_a_node_costs_few_describe_calls_and_few_lists(scene):
    assert scene.counts.describes() <= MOST_DESCRIBES
    assert scene.counts.lists() <= MOST_LISTS
    assert missed(scene) == []


def test_a_step_makes_few_calls_of_the_table(scene):
    """It uses the record of the step before it where no pause lies between them, and writes what waits for it."""
    assert scene.counts.table_calls() <= MOST_TABLE_CALLS


def test_no_list_is_of_all_budgets_or_daemon_sets(scene):
    requests = {what for _, what in scene.counts.kubernetes}
    assert not requests & {"list poddisruptionbudgets", "list daemonsets"}


def test_everything_that_ends_the_node_is_asked_once(scene):
    aws = scene.counts.by_operation(scene.counts.aws, ("interruption", "terminate", "drain"))
    assert aws["autoscaling:CompleteLifecycleAction"] == 1
    assert aws["autoscaling:TerminateInstanceInAutoScalingGroup"] <= 1


def test_an_idle_hour_costs_few_describe_calls():
    scene = idle_hour(nodes=5)
    assert scene.counts.describes(scene.counts.functions) <= MOST_IDLE
    assert missed(scene) == []


@pytest.mark.parametrize("run", [disruption, pytest.param(upgrade, marks=pytest.mark.long)])
def test_a_node_of_a_run_costs_few_calls_schedules_included(run):
    assert missed(run()) == []
