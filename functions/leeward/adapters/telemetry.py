"""Logs and metrics of the functions about remote APIs; the command line prints Events that were lost instead."""

from leeward.telemetry import Telemetry

EVENTS_LOST = "EventsLost"
CALLS_THROTTLED = "CallsThrottled"

kubernetes, aws = Telemetry("kubernetes"), Telemetry("aws")


def event_lost(sentence: str) -> None:
    """Log one line and count one Event that could not be written; no step depends on it."""
    kubernetes.warning(sentence)
    kubernetes.count({EVENTS_LOST: 1})


def throttled(call: str) -> None:
    """Log one line and count one try that AWS has throttled."""
    aws.info("AWS throttles a call", {"call": call})
    aws.count({CALLS_THROTTLED: 1})
