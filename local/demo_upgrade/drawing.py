"""The upgrade as a run record and as a page: what `leeward report` would draw of it."""

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from leeward.report.page import page
from leeward.report.record import Mark, MarkKind, RunRecord
from local.demo import record
from local.demo_upgrade.watch import Watched
from local.stack import ROOT, LocalStack

REPORT = ROOT / "build" / "demo-upgrade" / "report.html"


def write_report(stack: LocalStack, began: datetime, seen: Watched) -> Path:
    """The record and, beside it, the page; the page's path, from where the demo was started if it is below."""
    document = build(record.read(stack, began), seen).to_json()
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.with_name("record.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    REPORT.write_text(page(RunRecord.from_json(document)), encoding="utf-8")
    return REPORT.relative_to(Path.cwd()) if REPORT.is_relative_to(Path.cwd()) else REPORT


def build(sources: record.Sources, seen: Watched) -> RunRecord:
    """The demo's record, with what people did as its marks; the first of it is what the record begins with."""
    (_, first), *later = seen.deeds
    found = record.build(replace(sources, story=first))
    marks = [*found.marks, *(Mark(at=at, kind=MarkKind.EVENT, text=text) for at, text in later)]
    return replace(found, marks=tuple(sorted(marks, key=lambda mark: mark.at)))
