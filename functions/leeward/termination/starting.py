"""Starting the execution of a claim: any number of callers end with one open execution, awake."""

from leeward.errors import RecordChangedError
from leeward.model.termination import Status, TerminationRecord
from leeward.ports import Ports

RACES = 5


def start(record: TerminationRecord, ports: Ports) -> TerminationRecord:
    """Start the execution of the claim. While it is open it is woken where a cause has joined: its pause may last
    minutes. When a closed one holds the name, the next attempt is begun. A repeat wakes it once more, which only makes
    it look again. Raises RecordChangedError when others keep beginning attempts meanwhile.
    """
    for _ in range(RACES):
        if ports.executions.start(record.instance, record.attempt):
            if record.token and len(record.causes) > 1:
                ports.executions.wake(record.token)
            return record
        record = ports.claims.begin_attempt(record.instance, record.attempt)
        if record.status is Status.CLOSED:
            return record
    raise RecordChangedError(f"{record.instance}: {RACES} attempts were begun by others meanwhile")
