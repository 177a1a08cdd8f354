"""Policies that `leeward policy apply` writes: one record for each cluster, so that a reader sees a whole set or none.

They are in force where the deployment names no policies for the cluster."""

from dataclasses import dataclass
from datetime import datetime

LARGEST = 350_000  # bytes of all documents together: an item of the table holds 400 KB, names and caller included


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedPolicies:
    """Applied policies of a cluster."""

    cluster: str
    version: int = 0  # 0 where none was ever applied
    documents: tuple[tuple[str, str], ...] = ()  # (`NN-NAME`, canonical JSON) in the order in which policies are tried
    by: str = ""  # ARN of the caller
    at: datetime | None = None

    @property
    def size(self) -> int:
        """Bytes of all documents."""
        return sum(len(text.encode()) for _, text in self.documents)
