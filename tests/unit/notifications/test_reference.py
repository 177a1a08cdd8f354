"""The reference of events shows every type, and of each family a sample that is what the product sends."""

import json
import re
from pathlib import Path

from leeward.notifications.events import EventType
from leeward.notifications.workflow_events import PauseEventType, RunEventType, UpgradeEventType
from tests.unit.notifications.samples import samples

PAGE = Path("docs/reference/events.md").read_text()
FAMILIES = (EventType, PauseEventType, UpgradeEventType, RunEventType)
EVERY = [kind.value for family in FAMILIES for kind in family]


def test_every_type_is_in_the_table():
    assert re.findall(r"^\| `([A-Z][A-Za-z ]+)` \|", PAGE, re.MULTILINE) == EVERY


def test_a_sample_of_each_family_is_what_the_product_sends():
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert re.findall(r"^### (.+)$", PAGE, re.MULTILINE) == [event["event"] for event in shown]
    assert [event for event in shown if event != samples()[event["event"]]] == []
    assert [[event["event"] in set(family) for event in shown].count(True) for family in FAMILIES] == [1] * len(
        FAMILIES
    )


def test_all_types_of_a_family_have_the_keys_of_its_sample():
    keys = [{frozenset(samples()[kind.value]) for kind in family} for family in FAMILIES]
    assert [len(of_family) for of_family in keys] == [1] * len(FAMILIES)
