"""Logs and metrics of the functions about the Kubernetes API; the command line prints instead."""

from leeward.telemetry import Telemetry

EVENTS_LOST = "EventsLost"

telemetry = Telemetry("kubernetes")


def event_lost(sentence: str) -> None:
    """Log one line and count one Event that could not be written; no step depends on it."""
    telemetry.warning(sentence)
    telemetry.count({EVENTS_LOST: 1})
