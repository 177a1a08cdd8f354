"""What upgrades and disruption share: one function takes all their steps, and says what is next."""

import re

import pytest

from leeward.disruption import run as disruption_run
from leeward.disruption import steps as disruption_steps
from leeward.upgrade import run as upgrade_run
from leeward.upgrade import steps as upgrade_steps
from leeward.upgrade.managed import steps as managed_steps
from tests.state_machines.graph import Graph

DISRUPTION, UPGRADE = Graph("disruption"), Graph("node-group-upgrade")
MANAGED = Graph("managed-node-group-upgrade")
machines = pytest.mark.parametrize("graph", [DISRUPTION, UPGRADE, MANAGED], ids=lambda graph: graph.name)


@machines
def test_a_step_may_take_as_long_as_its_function(graph):
    assert all(task["TimeoutSeconds"] > 300 for task in graph.tasks.values())


@machines
def test_a_record_that_another_execution_has_changed_is_read_again(graph):
    for task in graph.tasks.values():
        assert "RecordChangedError" in {error for retry in task["Retry"] for error in retry["ErrorEquals"]}


@pytest.mark.parametrize(
    ("graph", "steps"),
    [(DISRUPTION, disruption_steps.STEPS), (UPGRADE, upgrade_steps.STEPS), (MANAGED, managed_steps.STEPS)],
)
def test_the_states_take_every_step_and_no_other(graph, steps):
    assert {task["Arguments"]["Payload"]["step"] for task in graph.tasks.values()} == set(steps)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (DISRUPTION, disruption_run.DisruptionNext),
        (UPGRADE, upgrade_run.UpgradeNext),
        (MANAGED, upgrade_run.UpgradeNext),
    ],
)
def test_the_choices_compare_with_words_that_steps_say(graph, words):
    said = set(re.findall(r"\.next = '([a-z-]+)'", graph.text))
    assert said
    assert said <= {word.value for word in words}
