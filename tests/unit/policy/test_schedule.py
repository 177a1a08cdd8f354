from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.policy.document import Window
from leeward.policy.schedule import any_active, is_active, next_start, parse_schedule, zone


def a_window(schedule, hours=1.0, time_zone="UTC"):
    return Window(schedule=schedule, duration=timedelta(hours=hours), time_zone=time_zone)


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "active"),
    [
        ("2024-05-06T08:59:59.999999", False),
        ("2024-05-06T09:00:00", True),
        ("2024-05-06T16:59:59.999999", True),
        ("2024-05-06T17:00:00", False),
        ("2024-05-05T12:00:00", False),  # a Sunday
    ],
)
def test_office_hours_open_at_nine_and_close_at_five(now, active):
    assert is_active(a_window("0 9 * * mon-fri", hours=8), utc(now)) is active


@pytest.mark.parametrize(
    ("schedule", "time_zone", "now", "start"),
    [
        ("0 9 * * mon-fri", "UTC", "2024-05-06T09:00:00", "2024-05-07T09:00:00"),
        ("0 9 * * mon-fri", "UTC", "2024-05-04T12:00:00", "2024-05-06T09:00:00"),
        ("30 1 * * *", "America/New_York", "2024-11-03T05:30:00", "2024-11-04T06:30:00"),  # once in a repeated hour
        ("30 2 * * *", "America/New_York", "2024-03-10T06:00:00", "2024-03-10T07:00:00"),  # at the skipped hour's end
    ],
)
def test_the_next_start_lies_after_now(schedule, time_zone, now, start):
    assert next_start(a_window(schedule, time_zone=time_zone), utc(now)) == utc(start)


def test_at_the_end_of_time_no_window_starts():
    assert next_start(a_window("0 0 1 1 *"), datetime(9999, 6, 1, tzinfo=UTC)) is None


def test_a_time_zone_moves_the_window():
    berlin = a_window("0 9 * * *", time_zone="Europe/Berlin")
    assert is_active(berlin, utc("2024-01-15T08:30:00"))  # winter: UTC+1
    assert not is_active(berlin, utc("2024-07-15T08:30:00"))
    assert is_active(berlin, utc("2024-07-15T07:30:00"))  # summer: UTC+2


def test_a_start_in_the_skipped_hour_comes_at_its_end():
    window = a_window("30 2 * * *", time_zone="America/New_York")  # 2024-03-10: 02:00 EST becomes 03:00 EDT
    assert not is_active(window, utc("2024-03-10T06:59:59"))
    assert is_active(window, utc("2024-03-10T07:00:00"))
    assert is_active(window, utc("2024-03-10T07:59:59"))
    assert not is_active(window, utc("2024-03-10T08:00:00"))


def test_a_start_in_the_repeated_hour_comes_once_in_its_first_pass():
    window = a_window("30 1 * * *", hours=0.5, time_zone="America/New_York")  # 2024-11-03: 02:00 EDT becomes 01:00 EST
    assert is_active(window, utc("2024-11-03T05:30:00"))
    assert not is_active(window, utc("2024-11-03T06:00:00"))
    assert not is_active(window, utc("2024-11-03T06:30:00"))
    assert not is_active(window, utc("2024-11-03T06:45:00"))


def test_an_hourly_line_follows_real_time_through_both_changes():
    window = a_window("0 * * * *", hours=0.5, time_zone="America/New_York")
    for start in ("2024-11-03T05:00:00", "2024-11-03T06:00:00", "2024-11-03T07:00:00", "2024-03-10T07:00:00"):
        assert is_active(window, utc(start) + timedelta(minutes=10))
        assert not is_active(window, utc(start) + timedelta(minutes=40))


def test_the_duration_is_elapsed_time_across_a_change_of_clocks():
    window = a_window("0 0 * * *", hours=4, time_zone="America/New_York")
    assert is_active(window, utc("2024-11-03T07:59:00"))  # 02:59 EST, 3 h 59 min after midnight EDT
    assert not is_active(window, utc("2024-11-03T08:00:00"))


def test_a_window_longer_than_its_period_is_always_open():
    window = a_window("0 9 * * *", hours=25)
    assert all(is_active(window, utc("2024-05-06T00:00:00") + timedelta(hours=hour)) for hour in range(48))


def test_a_day_of_month_or_a_day_of_week_is_enough_when_both_are_restricted():
    window = a_window("0 0 13 * fri", hours=24)
    assert is_active(window, utc("2024-05-13T12:00:00"))  # a Monday
    assert is_active(window, utc("2024-05-10T12:00:00"))  # a Friday
    assert not is_active(window, utc("2024-05-14T12:00:00"))


def test_times_before_1970_and_at_the_beginning_of_time_are_judged_too():
    window = a_window("0 9 * * *", hours=8, time_zone="Europe/Berlin")
    assert is_active(window, utc("1931-05-06T10:00:00"))
    assert not is_active(window, datetime.min.replace(tzinfo=UTC))


def test_several_windows_are_open_when_one_is_and_none_when_there_are_none():
    morning, evening = a_window("0 8 * * *"), a_window("0 20 * * *")
    assert any_active([morning, evening], utc("2024-05-06T20:30:00"))
    assert not any_active([morning, evening], utc("2024-05-06T12:30:00"))
    assert not any_active([], utc("2024-05-06T12:30:00"))


@given(
    st.integers(0, 2 * 365 * 86_400).map(lambda seconds: utc("2023-01-01T00:00:00") + timedelta(seconds=seconds)),
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(1, 30 * 60),
    st.sampled_from(["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata"]),
)
def test_a_daily_window_agrees_with_looking_at_every_day(now, hour, minute, minutes, name):
    window = Window(schedule=f"{minute} {hour} * * *", duration=timedelta(minutes=minutes), time_zone=name)
    local = now.astimezone(ZoneInfo(name))
    expected = False
    for back in range(-1, 4):
        day = (local - timedelta(days=back)).replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
        while day.astimezone(UTC).astimezone(ZoneInfo(name)).replace(tzinfo=None) != day.replace(tzinfo=None):
            day += timedelta(minutes=1)  # it lies in a skipped hour
        expected |= day.astimezone(UTC) <= now < day.astimezone(UTC) + window.duration
    assert is_active(window, now) is expected


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "America", "localtime", "/etc/localtime", "../UTC", "", "right/UTC", "Europe/" * 200]
)
def test_a_name_that_is_no_iana_zone_is_refused(name):
    with pytest.raises(ValueError, match="no IANA time zone"):
        zone(name)


@pytest.mark.parametrize(
    "line", ["", "* * * *", "* * * * * *", "60 * * * *", "a b c d e", "*/0 * * * *", "0 0 30 2 *", "@reboot", 5, None]
)
def test_a_bad_cron_line_is_refused(line):
    with pytest.raises(ValueError, match=r"cron line|Bad "):
        parse_schedule(line)


def test_a_cron_line_keeps_its_words_and_loses_its_spaces():
    assert parse_schedule("  0  9 * * mon-fri ") == "0 9 * * mon-fri"
    assert parse_schedule("@daily") == "@daily"
    assert is_active(a_window("@daily"), utc("2024-05-06T00:30:00"))


def test_a_question_mark_in_a_cron_line_is_a_star():
    assert parse_schedule("0 9 ? * 1-5") == "0 9 * * 1-5"
    assert parse_schedule("0 9 1 * ?") == "0 9 1 * *"


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("* * * * 3-3/4", "* * * * 3"),
        ("* * * * 0-0/1,6", "* * * * 0,6"),
        ("5-05/2 * * * mon-Mon/3", "5 * * * mon"),
        ("0 0 1 jan-1/2 *", "0 0 1 jan *"),
        ("0 0 1 1-3/2 sun-0/7", "0 0 1 1-3/2 sun"),
    ],
)
def test_a_range_of_one_value_has_no_step_as_in_crontab(line, read):
    assert parse_schedule(line) == read


def test_at_the_end_of_time_no_window_opens():
    assert not is_active(a_window("@yearly", time_zone="Africa/Cairo"), utc("9999-12-31T12:00:00"))
