"""Reading of the alarms that guard a workflow. An error is a reading that holds, no failure of the step: a retry would
take the step's time, and what the step has begun still has to be followed."""

from collections.abc import Iterable

from leeward.errors import LeewardError
from leeward.model.alarm import AlarmReading, reading_of
from leeward.ports.monitoring import Alarms


def read_alarms(names: Iterable[str], alarms: Alarms) -> AlarmReading:
    """Read the alarms with one call for a hundred names; none without names. Raises nothing."""
    wanted = tuple(dict.fromkeys(names))
    if not wanted:
        return AlarmReading()
    try:
        return reading_of(wanted, alarms.describe(wanted))
    except LeewardError as error:
        return AlarmReading(unreadable=f"{type(error).__name__}: {error}")
