"""Gate in front of the ports of a world: its faults, and the rate limits of its AWS."""

from collections.abc import Callable

from simulation.aws.rate_limits import RateLimits
from simulation.fault_rates import Faults
from simulation.faults import Injector
from simulation.invocations import Invocations
from simulation.timeline import Streams, Timeline


def first_gate(
    faults: Faults, streams: Streams, timeline: Timeline, invocations: Invocations, said: Callable[[str], None]
) -> Injector:
    """Return the source of faults, which does nothing until arrivals begin."""
    injector = Injector(faults, streams, timeline, invocations.sleep, said)
    injector.active = False
    if faults.token_buckets:
        environment, random = invocations.environment, streams.stream("back-off")
        injector.limits = RateLimits(timeline.now, invocations.sleep, random, environment)
    return injector
