"""`leeward report RECORD --to FILE.html`; executions are in test_report_live.py."""

import json

import pytest

from tests.unit.cli.report.run import a_full_record


@pytest.fixture
def record(tmp_path):
    path = tmp_path / "record.json"
    path.write_text(json.dumps(a_full_record().to_json()))
    return path


def test_it_writes_the_page_and_prints_its_path(leeward, record, tmp_path):
    target = tmp_path / "report.html"
    result = leeward("report", record, "--to", target)
    assert (result.code, result.out.strip(), result.err) == (0, str(target), "")
    assert "a spot warning" in target.read_text(encoding="utf-8")


def test_a_long_path_stays_on_one_line(leeward, record, tmp_path):
    folder = tmp_path / ("a" * 200) / ("b" * 200)
    folder.mkdir(parents=True)
    result = leeward("report", record, "--to", folder / "report.html")
    assert result.out == f"{folder / 'report.html'}\n"


def test_json_says_what_was_drawn(leeward, record, tmp_path):
    target = tmp_path / "report.html"
    result = leeward("report", record, "--to", target, "-o", "json")
    assert result.json == {"report": str(target), "nodes": 2, "workloads": 2, "marks": 4}


def test_the_same_record_gives_the_same_page(leeward, record, tmp_path):
    for name in ("one.html", "two.html"):
        leeward("report", record, "--to", tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_a_page_that_is_there_is_replaced(leeward, record, tmp_path):
    target = tmp_path / "report.html"
    target.write_text("old")
    assert leeward("report", record, "--to", target).code == 0
    assert "old" not in target.read_text(encoding="utf-8")[:20]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "found no JSON (Expecting property name"),
        (b"\xff\xfe\x00", "found no JSON ('utf-8' codec can't decode"),
        (b"[" * 100_000, "found JSON nested too deep"),
        (b"[]", "the record: found [], expected an object"),
        (b'{"version": 7}', "source: found nothing, expected it to be there"),
    ],
)
def test_what_is_no_record_is_refused_with_its_file(leeward, tmp_path, content, message):
    path = tmp_path / "record.json"
    path.write_bytes(content)
    assert leeward.refuses("report", path, "--to", tmp_path / "x.html").startswith(f"{path}: {message}")
    assert not (tmp_path / "x.html").exists()


def test_a_file_that_is_not_there_is_named(leeward, tmp_path):
    said = leeward.refuses("report", tmp_path / "none.json", "--to", tmp_path / "x.html")
    assert "found no readable file (No such file or directory), expected a run record" in said


def test_a_place_that_cannot_be_written_is_named(leeward, record, tmp_path):
    target = tmp_path / "nowhere" / "x.html"
    said = leeward.refuses("report", record, "--to", target)
    assert said == f"--to: found {str(target)!r} (No such file or directory), expected a file that can be written"


def test_the_record_is_never_overwritten(leeward, record):
    before = record.read_bytes()
    assert "the record itself" in leeward.refuses("report", record, "--to", record)
    assert record.read_bytes() == before


def test_to_must_be_given(leeward, record):
    assert leeward.refuses("report", record).startswith("report: found nothing, expected --to")


def test_the_record_can_be_written_again_but_not_over_what_was_read(leeward, record, tmp_path):
    target, copy = tmp_path / "x.html", tmp_path / "copy.json"
    assert leeward("report", record, "--to", target, "--record", copy).out == f"{target}\n{copy}\n"
    assert json.loads(copy.read_text()) == json.loads(record.read_text())
    assert "the record itself" in leeward.refuses("report", record, "--to", target, "--record", record)
    assert "the file of --record" in leeward.refuses("report", record, "--to", copy, "--record", copy)
