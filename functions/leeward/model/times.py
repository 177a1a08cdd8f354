"""Instants as text: RFC 3339 in UTC with `Z`, the only format that Leeward writes."""

from datetime import UTC, datetime


def parse_instant(text: str) -> datetime:
    """Parse an RFC 3339 instant into an aware UTC datetime. Raises ValueError, also if the time zone is missing."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
    if moment.tzinfo is None:
        raise ValueError(f"no time zone in {text!r}")
    return moment.astimezone(UTC)


def format_instant(moment: datetime) -> str:
    """Format an aware datetime as RFC 3339 in UTC with `Z`: in whole seconds, else in milliseconds."""
    utc = moment.astimezone(UTC)
    spec = "milliseconds" if utc.microsecond else "seconds"
    return utc.replace(tzinfo=None).isoformat(timespec=spec) + "Z"


def as_instant(value: datetime | str) -> datetime:
    """Return an aware UTC datetime: boto3 returns datetimes, the AWS CLI prints strings. Raises ValueError."""
    return value.astimezone(UTC) if isinstance(value, datetime) else parse_instant(value)
