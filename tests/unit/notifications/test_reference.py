"""The reference of events shows every type, each with a sample that is what the product sends."""

import json
import re
from pathlib import Path

from leeward.notifications.events import EventType
from leeward.notifications.pause_events import PauseEventType
from leeward.notifications.run_events import RunEventType
from leeward.notifications.upgrade_events import UpgradeEventType
from tests.unit.notifications.samples import samples

PAGE = Path("docs/reference/events.md").read_text()
EVERY = [kind.value for kinds in (EventType, PauseEventType, UpgradeEventType, RunEventType) for kind in kinds]


def test_every_type_is_in_the_table_and_has_a_heading():
    assert re.findall(r"^\| `([A-Z][A-Za-z ]+)` \|", PAGE, re.MULTILINE) == EVERY
    assert re.findall(r"^### (.+)$", PAGE, re.MULTILINE) == EVERY


def test_each_sample_is_what_the_product_sends():
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert shown == list(samples().values())
    assert [event["event"] for event in shown] == EVERY
