"""`make demo-consolidate` as a user runs it: every promise kept, and the dollars reported."""

import re

import pytest

from tests.local.demos import demo

pytestmark = [pytest.mark.local, pytest.mark.long]

PROMISES = 11


def test_the_consolidation_demo_keeps_every_promise_and_says_what_is_saved(tmp_path):
    assert re.search(r"\$1\.056 an hour saved", demo("demo_consolidate", tmp_path, promises=PROMISES))
