"""Second observation: what two passes have seen, most of a minute apart and within ten."""

from datetime import timedelta

from leeward.ports.clock import Clock
from leeward.ports.records import Claims

SECOND_OBSERVATION = timedelta(minutes=10)
FRESH = timedelta(seconds=50)  # a schedule that fires twice is no second observation


def seen_before(what: str, clock: Clock, claims: Claims) -> bool:
    """Return whether a different pass has observed it before. `what`: a name of the observation and its object. The
    second entry lasts for as long as the first observation is too fresh.
    """
    now, kind = clock.now(), what.partition("#")
    fresh = f"{kind[0]}-fresh#{kind[2]}"
    if claims.once(what, SECOND_OBSERVATION, now):
        claims.once(fresh, FRESH, now)
        return False
    return claims.once(fresh, timedelta(), now)
