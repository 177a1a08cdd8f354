"""The pictures of reports in the documentation: their examples, their files, and how they are made."""

import json
import re
import struct
from html import unescape
from pathlib import Path

import jsonschema
import pytest

from leeward.cli.fitting import width_of
from leeward.cli.report.record import RunRecord
from local.pictures import __main__ as pictures
from local.pictures import demo_tables
from local.pictures.examples import termination
from tests.cli.test_golden import check
from tests.tools import need

DOCS = Path("docs")
SCHEMA = json.loads((DOCS / "schema" / "run-record.json").read_text())


def test_the_example_follows_from_its_file_alone():
    assert termination() == termination()


def test_the_example_says_what_a_report_is_for():
    assert termination().headline.endswith(
        "was reclaimed by EC2 (spot). 12 pods moved in 74 s of 120 s; none was killed."
    )


def test_the_records_are_as_the_schema_says():
    demo = json.loads(pictures.DEMO.read_text())
    for document in (termination().to_json(), demo):
        jsonschema.validate(document, SCHEMA)
        assert RunRecord.from_json(document).nodes


def test_every_picture_of_a_report_in_the_documentation_is_made_and_every_one_made_is_shown(monkeypatch):
    monkeypatch.setattr(pictures, "_simulated", lambda: "")
    made = {f"{picture.name}.png" for picture in pictures.pictures()}
    pages = [*DOCS.rglob("*.md"), Path("README.md")]
    shown = {name for page in pages for name in re.findall(r"pictures/([\w-]+\.png)", page.read_text())}
    assert made == shown
    assert all((pictures.FOLDER / name).exists() for name in made)


def test_the_first_picture_says_what_the_report_of_a_demo_says_today():
    (said,) = re.findall(r"(?m)^!\[(.+)\]\(docs/pictures/report\.png\)$", Path("README.md").read_text())
    demo = RunRecord.from_json(json.loads(pictures.DEMO.read_text()))
    headline_of_report = pictures.title_of(pictures.page(demo))
    assert headline_of_report
    assert said == headline_of_report


def test_every_picture_of_a_report_is_drawn_from_the_page_of_today(monkeypatch):
    """All but that of the simulation, which shows another run after each change of it: `make pictures` draws them."""
    monkeypatch.setattr(pictures, "_simulated", lambda: "")
    files = {one: pictures.FOLDER / f"{one.name}.png" for one in pictures.pictures() if one.html}
    assert len(files) == 4
    stale = [path.name for one, path in files.items() if pictures.text_in(path.read_bytes()) != pictures.text_of(one)]
    assert stale == []


def test_chromium_draws_both_schemes_beside_each_other(tmp_path, monkeypatch):
    chromium = need("chromium")
    monkeypatch.setattr(pictures, "FOLDER", tmp_path)
    monkeypatch.setattr(pictures, "ROOT", tmp_path)
    html = "<!DOCTYPE html><h1>a report</h1>"
    picture = pictures.Picture(name="both", html=html, width=300, height=200, schemes=("light", "dark"))
    found = pictures.shoot(picture, chromium).read_bytes()
    assert found.startswith(b"\x89PNG")
    assert struct.unpack(">II", found[16:24]) == (600, 200)
    assert pictures.text_in(found) == pictures.text_of(picture)
    assert pictures.text_of(picture).startswith("a report\n")


def test_the_picture_of_the_demo_has_the_words_that_the_demo_prints():
    """Words and their order, line by line: the picture is made again with `make pictures`."""
    picture = (pictures.FOLDER / "demo.svg").read_text()
    assert picture == demo_tables.drawn()
    drawn = [re.findall(r"<tspan[^>]*>([^<]*)</tspan>", line) for line in re.findall(r"<text y=.*?</text>", picture)]
    words = [" ".join(" ".join(map(unescape, parts)).split()) for parts in drawn]
    assert set(words) == {" ".join(line.split()) for line in demo_tables.lines() if line}


@pytest.mark.parametrize("columns", [80, 120])
def test_the_tables_of_the_demo_fit_a_terminal(columns):
    shown = demo_tables.lines(columns)
    assert [line for line in shown if width_of(line) > columns] == []
    told = json.loads(demo_tables.RESULTS.read_text())
    words = set(" ".join(demo_tables.lines(400)).split())
    assert set(" ".join(line for line in shown if not line.startswith("…")).split()) <= words
    text = " ".join(" ".join(shown).split())
    assert [one["node"] for one in told["results"] if one["node"] not in text] == []
    assert "TERMINATED" in text
    check(f"terminal/demo-{columns}", "\n".join([*shown, ""]), "")


def test_without_chromium_it_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setattr(pictures.shutil, "which", lambda _: None)
    assert pictures.main() == 1
    assert "make tools installs it" in capsys.readouterr().err
