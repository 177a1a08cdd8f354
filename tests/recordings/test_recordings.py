"""docs/assets/top.svg and watch.svg: made again they are the same, and show what the command line prints."""

import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from leeward.adapters import wiring
from leeward.cli.main import main
from recordings.pictures import SCENES, drawn
from recordings.stage import CLUSTER, StageClock, ports_with, shop
from recordings.svg import svg
from tests.tools import need

ASSETS = Path("docs/assets")
SVG = "{http://www.w3.org/2000/svg}"
LARGEST = 300_000  # bytes


@pytest.fixture(params=SCENES)
def name(request):
    return request.param


@pytest.fixture
def picture(name):
    return ElementTree.parse(ASSETS / f"{name}.svg").getroot()


def rows_of(picture):
    """Text of every row of the film, by frame."""
    texts = {
        group.get("id"): " ".join(part.text for part in group.iter(f"{SVG}tspan"))
        for group in picture.find(f"{SVG}defs")
    }
    film = next(one for one in picture.iter(f"{SVG}g") if one.get("id") == "film")
    return [[texts[use.get("href")[1:]] for use in frame.iter(f"{SVG}use")] for frame in film]


def test_the_scene_played_again_gives_the_same_picture(name):
    """After a change of what is printed, or of how the simulated cluster behaves."""
    same = drawn(name) == (ASSETS / f"{name}.svg").read_text(encoding="utf-8")
    assert same, f"{name}.svg is not what the command line shows now: make recordings writes it, in seconds"


def test_every_frame_is_what_the_terminal_showed(name, picture):
    frames = SCENES[name]().frames
    shown = [
        [re.sub(r"[█░ ]+", " ", "".join(run.text for run in row)).strip() for row in frame.rows if row]
        for frame in frames
    ]
    assert [[re.sub(r" +", " ", row).strip() for row in rows] for rows in rows_of(picture)] == shown


def test_the_first_view_of_top_is_what_the_command_prints(capsys, monkeypatch):
    """Without the recording's terminal: `leeward top --once` about the same cluster."""
    stage = shop()
    clock = StageClock(stage, lambda: None, 0)
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_, **__: ports_with(stage, clock))
    assert main(["top", "--once", "--cluster", CLUSTER, "--now", clock.now().isoformat()]) == 0
    printed = [re.sub(r"[█░#\- ]+", " ", line).strip() for line in capsys.readouterr().out.splitlines() if line]
    first = next(rows for rows in rows_of(ElementTree.parse(ASSETS / "top.svg").getroot()) if "Ctrl-C" in rows[0])
    assert [re.sub(r"[- ]+", " ", row).strip() for row in first[2:]] == printed  # behind the clock and the keys


def test_the_recordings_tell_their_story(name, picture):
    seen = "\n".join(row for rows in rows_of(picture) for row in rows)
    for expected in {"top": ("draining", "terminating", "pdb shop/"), "watch": ("pods evicted", "upgrading", "done: ")}[
        name
    ]:
        assert expected in seen


def test_a_picture_is_light_stands_alone_and_respects_those_who_want_no_motion(name, picture):
    text = (ASSETS / f"{name}.svg").read_text(encoding="utf-8")
    assert len(text.encode()) < LARGEST
    assert "@media (prefers-reduced-motion:reduce){#film{animation:none" in text
    assert re.findall(r"https?://[^\"\s)]+", text) == ["http://www.w3.org/2000/svg"]
    assert not {element.tag for element in picture.iter()} & {f"{SVG}script", f"{SVG}image", f"{SVG}foreignObject"}
    assert all(element.text for element in (picture.find(f"{SVG}title"), picture.find(f"{SVG}desc")))
    names = [element.get("id") for element in picture.iter() if element.get("id")]
    assert len(names) == len(set(names))


def test_without_a_frame_there_is_no_picture():
    with pytest.raises(ValueError, match="found no frames"):
        svg([], None)


def test_a_browser_draws_the_frame_that_stands_still(name, tmp_path):
    """Chromium reads the file without an error and draws more than the empty window."""
    chromium = need("chromium")
    shot = tmp_path / "frame.png"
    page = (ASSETS / f"{name}.svg").resolve().as_uri()
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--force-prefers-reduced-motion"]
    subprocess.run([*command, "--window-size=1240,440", f"--screenshot={shot}", page], check=True, capture_output=True)
    assert shot.stat().st_size > 15_000
