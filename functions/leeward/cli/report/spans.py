"""Phases of a node from the moments at which they began; the order of phases is that of `Phase`."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from leeward.cli.report.record import Phase, Span

# Times of a termination record at which a phase begins: the first eviction, the last pod, EC2's confirmation.
PHASES_OF_TIMES: Mapping[str, Phase] = MappingProxyType(
    {
        "draining": Phase.DRAINING,
        "drained": Phase.SETTLING,
        "terminated": Phase.TERMINATED,
    }
)


def spans_of(times: Mapping[Phase, datetime], end: datetime) -> tuple[Span, ...]:
    """Return the phases, each up to the next; a phase that began after a later one is left out, as the later one holds.
    A phase that would begin after the end is left out too.
    """
    known = [(phase, times[phase]) for phase in Phase if phase in times and times[phase] <= end]
    kept: list[tuple[Phase, datetime]] = []
    for phase, at in reversed(known):
        if not kept or at <= kept[0][1]:
            kept.insert(0, (phase, at))
    ends = [*(at for _, at in kept), end][1:]
    return tuple(Span(phase=phase, begin=at, end=until) for (phase, at), until in zip(kept, ends, strict=True))
