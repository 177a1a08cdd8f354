"""Each target notices a reader that is broken the way readers break: the first failures come soon."""

import re
import sys

import pytest

from fuzz.runner import Runner
from fuzz.targets import TARGETS
from leeward.adapters.folder import schema
from leeward.cli.report import page
from leeward.interruption import fields
from leeward.model import pod, quantity
from leeward.node_template import flags
from leeward.policy import durations, write
from leeward.scheduling import selectors


def python_int(text):
    try:
        return int(text)
    except ValueError:
        return None


BREAKS = {
    "quantities": (quantity, "_QUANTITY", re.compile(quantity._QUANTITY.pattern.replace("[0-9]", r"\d"))),
    "selectors": (selectors, "parse_int", python_int),
    "windows": (durations, "_WHOLE", re.compile(r".*", re.DOTALL)),
    "messages": (fields, "_bounded", lambda key, value: {value: value}[value.strip()]),
    "policy-documents": (write, "_count_or_share", lambda nodes, percent: str(nodes)),
    "policy-texts": (write, "format_duration", lambda duration: f"{duration.total_seconds():.0f}s"),
    "user-data": (flags, "is_label", lambda key, value: True),
    "reports": (page, "safe", lambda text: text),
    "folders": (schema, "_followed", lambda steps, value, path: (value[steps[0]], path)),
    "objects": (pod, "text", lambda value, default="": value or default),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_broken_reader_is_noticed(name, monkeypatch):
    module, attribute, broken = BREAKS[name]
    before = set(sys.modules)
    monkeypatch.setattr(module, attribute, broken)
    target = TARGETS[name]()
    runner = Runner(target, seed=1)
    try:
        assert any(runner.failure_of(runner.value_of(number))[0] for number in range(4 * target.short))
    finally:
        target.close()
    assert [module for module in set(sys.modules) - before if module.startswith("leeward.")] == []
