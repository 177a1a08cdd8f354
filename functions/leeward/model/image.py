"""An image (AMI) as EC2 describes it: what it runs on, and who owns it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from leeward.model.instance_type import ARCHITECTURES
from leeward.model.times import parse_instant

OWNERS_BY_AWS = frozenset({"amazon", "aws-marketplace"})  # ImageOwnerAlias of images that AWS publishes or has vetted


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Image. `architecture` in Kubernetes' term; `owner`: account, `alias`: EC2's name of that account, empty for most;
    each is empty where it is not known. `created`: None where it is not known. `windows`: EC2's platform is Windows.
    """

    id: str
    architecture: str = ""
    owner: str = ""
    alias: str = ""
    created: datetime | None = None
    windows: bool = False

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse an element of `Images` of DescribeImages."""
        return cls(
            id=str(raw["ImageId"]),
            architecture=ARCHITECTURES.get(str(raw.get("Architecture") or ""), ""),
            owner=str(raw.get("OwnerId") or ""),
            alias=str(raw.get("ImageOwnerAlias") or ""),
            created=_instant(str(raw.get("CreationDate") or "")),
            windows=str(raw.get("Platform") or "").lower() == "windows",
        )


def _instant(text: str) -> datetime | None:
    with suppress(ValueError, OverflowError):
        return parse_instant(text)
    return None
