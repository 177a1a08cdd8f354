from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.policy.durations import LONGEST, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15m", 900), ("48h", 172_800), ("1h30m", 5400), ("60s", 60), ("1.5h", 5400), ("500ms", 0.5), ("0", 0), ("0s", 0)],
)
def test_durations_read_as_in_go(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "15", "m", "15 m", "-5m", "+5m", "1d", "1h30", "Never", "5M", "1e3s", "٣m", ".5h", "3000000h", "1ns"]
)
def test_everything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"not a duration|out of range"):
        parse_duration(text)


@pytest.mark.parametrize("value", [15, 1.5, True, None, ["15m"], {}])
def test_what_is_no_text_is_no_duration(value):
    with pytest.raises(ValueError, match="not text"):
        parse_duration(value)


@given(st.timedeltas(min_value=timedelta(), max_value=LONGEST))
def test_a_duration_survives_being_written_and_read(duration):
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (60, "1m"), (5400, "1h30m"), (172_800, "48h"), (3661.5, "1h1m1.5s")]
)
def test_durations_are_written_short(seconds, text):
    assert format_duration(timedelta(seconds=seconds)) == text
