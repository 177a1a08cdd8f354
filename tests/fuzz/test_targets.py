"""The short form of `make fuzz`: the same inputs every time, a few seconds for each target."""

import pytest

from fuzz.runner import Runner
from fuzz.targets import TARGETS

SEED = 20240501


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_is_read_as_promised_and_soon(name):
    target = TARGETS[name]()
    try:
        result = Runner(target, SEED).run(0, target.short)
    finally:
        target.close()
    assert result.inputs == target.short
    assert [(failure.number, failure.kind, failure.smallest) for failure in result.failures] == []


def test_all_targets_together_reach_ten_million_and_each_has_its_share():
    goals = {name: target.goal for name, target in TARGETS.items()}
    assert sum(goals.values()) >= 10_000_000
    assert [name for name, goal in goals.items() if goal < (20_000 if name == "folders" else 100_000)] == []
