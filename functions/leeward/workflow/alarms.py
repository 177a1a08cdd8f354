"""Reading of the alarms that guard a workflow. An error is a reading that holds, no failure of the step: a retry would
take the step's time, and what the step has begun still has to be followed."""

from collections.abc import Iterable, Mapping

from leeward.errors import LeewardError
from leeward.model.alarm import AlarmReading, reading_of
from leeward.ports.monitoring import Alarms


def read_alarms(names: Iterable[str], alarms: Alarms) -> AlarmReading:
    """Read the alarms with one call for a hundred names; none without names. Raises nothing."""
    return read_each({"": tuple(names)}, alarms)[""]


def read_each(names: Mapping[str, tuple[str, ...]], alarms: Alarms) -> dict[str, AlarmReading]:
    """Read the alarms of several objects with one call for a hundred names; a reading for each. Raises nothing."""
    wanted = tuple(dict.fromkeys(name for each in names.values() for name in each))
    try:
        known = alarms.describe(wanted) if wanted else {}
    except LeewardError as error:
        unreadable = AlarmReading(unreadable=f"{type(error).__name__}: {error}")
        return {key: unreadable if each else AlarmReading() for key, each in names.items()}
    return {key: reading_of(each, known) for key, each in names.items()}
