"""`ports.records.PastTerminations` on DynamoDB, for the command line alone: no function may scan the table."""

from collections.abc import Sequence

from leeward.adapters.aws.record_items import record_key, record_of
from leeward.adapters.aws.table import DynamoTable
from leeward.model.termination import TerminationRecord


class DynamoPastTerminations:
    """All termination records of the table `leeward`."""

    def __init__(self, table: DynamoTable) -> None:
        self._table = table

    def of_cluster(self, cluster: str) -> Sequence[TerminationRecord]:
        """Return them by instance."""
        records = (record_of(item) for item in self._table.all_of(record_key("")))
        return sorted((one for one in records if one.subject.cluster == cluster), key=lambda record: record.instance)
