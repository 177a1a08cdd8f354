"""RFC 3339 instants in UTC with Z, the only spelling that leaves Leeward."""

from datetime import UTC, datetime


def parse_instant(text: str) -> datetime:
    """An RFC 3339 instant as an aware UTC datetime. Raises ValueError, also for an instant without a zone."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
    if moment.tzinfo is None:
        raise ValueError(f"no time zone in {text!r}")
    return moment.astimezone(UTC)


def format_instant(moment: datetime) -> str:
    """RFC 3339 in UTC with Z, to the second, with milliseconds where there are any."""
    utc = moment.astimezone(UTC)
    spec = "milliseconds" if utc.microsecond else "seconds"
    return utc.replace(tzinfo=None).isoformat(timespec=spec) + "Z"


def as_instant(value: datetime | str) -> datetime:
    """boto3 gives datetimes, the AWS command line strings: both become aware UTC datetimes."""
    return value.astimezone(UTC) if isinstance(value, datetime) else parse_instant(value)
