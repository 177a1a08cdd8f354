"""Run record and page of the upgrade, as `leeward report` would draw them."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from leeward.cli.report.page import page
from leeward.cli.report.record import Mark, MarkKind, RunRecord
from local.demo import record
from local.demo_upgrade.watch import Watched
from local.stack import ROOT, LocalStack

REPORT = ROOT / "build" / "demo-upgrade" / "report.html"


def write_report(stack: LocalStack, began: datetime, seen: Watched) -> Path:
    """Write the record and, beside it, the page; return the page's path, relative to the demo's working directory if it
    is below.
    """
    document = build(record.read(stack, began), seen).to_json()
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.with_name("record.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    REPORT.write_text(page(RunRecord.from_json(document)), encoding="utf-8")
    return REPORT.relative_to(Path.cwd()) if REPORT.is_relative_to(Path.cwd()) else REPORT


def build(sources: record.Sources, seen: Watched) -> RunRecord:
    """Build the demo's record, with the users' actions as its marks; it begins with the first of them."""
    (_, first), *later = seen.actions
    found = record.build(replace(sources, story=first))
    marks = [*found.marks, *(Mark(at=at, kind=MarkKind.EVENT, text=text) for at, text in later)]
    return replace(found, marks=tuple(sorted(marks, key=lambda mark: mark.at)))
