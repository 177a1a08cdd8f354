"""Ending of a drain for an instance that stays: kept cordoned, or rebooted and returned to service."""

from dataclasses import replace

from leeward.model.termination import TerminationRecord
from leeward.termination.run import Next, Run


def after_drain(run: Run, record: TerminationRecord) -> Run:
    """Return the step after a drain: as it is for an instance that ends, kept at once, or rebooted once it has settled,
    so that load balancers send nothing to a node that is down.
    """
    if run.next is not Next.DRAINED:
        return run
    if record.keeps:
        return replace(run, next=Next.KEPT, pause=0)
    return replace(run, next=Next.REBOOT) if record.reboot is not None and not run.pause else run
