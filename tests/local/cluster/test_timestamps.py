"""Times as the API server writes them, and ages as kubectl prints them."""

import pytest

from local.cluster.timestamps import parsed, rfc3339, rfc3339_micro, short_age

DAY, YEAR = 86400, 365 * 86400


@pytest.mark.parametrize("text", ["2026-03-05T10:00:00Z", "2026-03-05T10:00:00.000000Z", "2026-03-05T11:00:00+01:00"])
def test_a_time_with_a_time_zone_is_read(text):
    assert rfc3339(parsed(text)) == "2026-03-05T10:00:00Z"


def test_a_micro_time_keeps_its_fraction():
    assert rfc3339_micro(parsed("2026-03-05T10:00:00.250000Z")) == "2026-03-05T10:00:00.250000Z"


@pytest.mark.parametrize("text", ["2026-03-05T10:00:00", "2026-03-05", "now", ""])
def test_a_text_that_names_no_moment_is_refused(text):
    with pytest.raises(ValueError, match=r"no time zone|isoformat"):
        parsed(text)


@pytest.mark.parametrize(
    ("seconds", "printed"),
    [
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (15 * 60, "15m"),
        (5 * 3600 + 600, "5h10m"),
        (26 * 3600, "26h"),
        (3 * DAY + 4 * 3600, "3d4h"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 35 * DAY, "2y35d"),
        (9 * YEAR + 35 * DAY, "9y"),
    ],
)
def test_an_age_is_printed_as_kubectl_prints_it(seconds, printed):
    assert short_age(seconds) == printed
