"""docs/permissions as statements: the placeholders filled in, as a person does who makes policies of the files."""

import json
from pathlib import Path

from tests.infra.template import ACCOUNT, REGION, Statement, statements_of

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "permissions"
FILES = ("deploy", "operate", "read")


def text(name: str) -> str:
    """The file as it is."""
    return (FOLDER / f"{name}.json").read_text(encoding="utf-8")


def statements(
    name: str, *, account: str = ACCOUNT, region: str = REGION, cluster: str = "prod", bucket: str = "assets"
) -> list[Statement]:
    """The statements of one file."""
    filled = text(name).replace("ACCOUNT", account).replace("REGION", region)
    return list(statements_of(json.loads(filled.replace("CLUSTER", cluster).replace("BUCKET", bucket))))
