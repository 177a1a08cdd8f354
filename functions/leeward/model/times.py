"""Instants of RFC 3339 in UTC with Z, the only spelling that leaves Leeward."""

from datetime import UTC, datetime


def parse_instant(text: str) -> datetime:
    """Parse an RFC 3339 instant into an aware UTC datetime. Raises ValueError, also for an instant without a zone."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
    if moment.tzinfo is None:
        raise ValueError(f"no time zone in {text!r}")
    return moment.astimezone(UTC)


def format_instant(moment: datetime) -> str:
    """Format as RFC 3339 in UTC with Z, to the second, with milliseconds if there are any."""
    utc = moment.astimezone(UTC)
    spec = "milliseconds" if utc.microsecond else "seconds"
    return utc.replace(tzinfo=None).isoformat(timespec=spec) + "Z"


def as_instant(value: datetime | str) -> datetime:
    """Convert to an aware UTC datetime: boto3 gives datetimes, the AWS command line strings."""
    return value.astimezone(UTC) if isinstance(value, datetime) else parse_instant(value)
