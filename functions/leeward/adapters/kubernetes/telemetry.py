"""What the functions log and count about the Kubernetes API; the command line prints instead."""

EVENTS_LOST = "EventsLost"


def event_lost(sentence: str) -> None:
    """One line and one count for an Event that could not be written; no step depends on it."""
    from aws_lambda_powertools.logging import Logger  # late: seldom needed, and a function starts cold without it
    from aws_lambda_powertools.metrics import Metrics, MetricUnit

    Logger(service="kubernetes").warning(sentence)
    metrics = Metrics(namespace="Leeward", service="kubernetes")
    metrics.add_metric(name=EVENTS_LOST, unit=MetricUnit.Count, value=1)
    metrics.flush_metrics()
