"""docs/permissions as statements: the placeholders filled in, as a person does who makes policies of the files."""

import json
from pathlib import Path
from typing import Any

from tests.infra.template import ACCOUNT, REGION, Statement, statements_of

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "permissions"
FILES = ("access-entries", "deploy", "operate", "policies", "read")


def text(name: str) -> str:
    """The file as it is."""
    return (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def document_for(
    name: str, *, account: str = ACCOUNT, region: str = REGION, cluster: str = "prod", bucket: str = "assets"
) -> dict[str, Any]:
    """One file, filled in."""
    filled = text(name).replace("ACCOUNT", account).replace("REGION", region)
    found: dict[str, Any] = json.loads(filled.replace("CLUSTER", cluster).replace("BUCKET", bucket))
    return found


def statements(name: str, **place: str) -> list[Statement]:
    """The statements of one file; `place`: account, region, cluster and bucket other than the usual ones."""
    return list(statements_of(document_for(name, **place)))
