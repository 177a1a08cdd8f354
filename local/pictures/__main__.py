"""`make pictures`: draws the tables of the demo, and the reports of the documentation with headless Chromium, on a
screen and on a phone.

The demo's record is kept in `demo.json` and its results in `demo-results.json`, each from a run of `make demo`; the
simulated run is made again from its seed."""

import hashlib
import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path

from leeward.cli.report.page import page
from leeward.cli.report.record import RunRecord
from local.pictures import demo_tables
from local.pictures.examples import termination
from local.stack import ROOT

FOLDER = ROOT / "docs" / "pictures"
DEMO = Path(__file__).with_name("demo.json")
SIMULATED = ("--seed", "7", "--hours", "0.75", "--per-hour", "20", "--nodes", "8")  # as docs/designs/simulation.md says
SCREEN, PHONE = 1440, 390  # pixels
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--disable-dev-shm-usage"),
    *("--run-all-compositor-stages-before-draw", "--virtual-time-budget=3000"),  # else a frame may be half painted
)
SECONDS = 120
AFTER_HEADER = 33  # bytes of a PNG: signature and IHDR


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Picture of a page: `schemes` beside each other, each `width` x `height` pixels."""

    name: str
    html: str
    width: int
    height: int
    schemes: tuple[str, ...] = ("light",)


def pictures() -> Iterable[Picture]:
    """Yield every picture of a report."""
    html = page(termination())
    yield Picture(name="termination", html=html, width=SCREEN, height=1000)
    yield Picture(name="termination-dark", html=html, width=SCREEN, height=1000, schemes=("dark",))
    yield Picture(name="termination-phone", html=html, width=PHONE, height=1100, schemes=("light", "dark"))
    yield Picture(name="report", html=_drawn(DEMO), width=SCREEN, height=1080)
    yield Picture(name="simulation-report", html=_simulated(), width=SCREEN, height=1240)


def _drawn(path: Path) -> str:
    return page(RunRecord.from_json(json.loads(path.read_text(encoding="utf-8"))))


def _simulated() -> str:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "run.json"
        command = [sys.executable, "-m", "simulation", *SIMULATED, "--record", str(target)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        return _drawn(target)


def framed(picture: Picture) -> str:
    """Return a page with the report in frames: a window of Chromium cannot be as narrow as a phone, and a frame has a
    colour scheme of its own.
    """
    size = f'width="{picture.width}" height="{picture.height}"'
    frames = "".join(
        f'<iframe {size} style="border:0;color-scheme:{scheme}" srcdoc="{escape(picture.html)}"></iframe>'
        for scheme in picture.schemes
    )
    head = '<!DOCTYPE html><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    return f'{head}<body style="margin:0;display:flex">{frames}</body>'


def shoot(picture: Picture, chromium: str) -> Path:
    """Write the picture as PNG and return its path. Raises CalledProcessError if Chromium fails."""
    target = FOLDER / f"{picture.name}.png"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(framed(picture), encoding="utf-8")
        window = f"{picture.width * len(picture.schemes)},{picture.height}"
        command = [
            *(chromium, *QUIET, f"--user-data-dir={folder}/profile"),
            *(f"--window-size={window}", f"--screenshot={target}", source.as_uri()),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    target.write_bytes(with_text(target.read_bytes(), text_of(picture)))
    return target


def title_of(html: str) -> str:
    """Return the headline of a report, empty without one."""
    headline = re.search(r"(?s)<h1[^>]*>(.*?)</h1>", html)
    return unescape(re.sub(r"<[^>]+>", " ", headline[1])).strip() if headline else ""


def text_of(picture: Picture) -> str:
    """Return what a picture carries of its page: the headline, and a digest of everything that is drawn."""
    return f"{title_of(picture.html)}\n{hashlib.sha256(framed(picture).encode()).hexdigest()}"


def with_text(png: bytes, text: str) -> bytes:
    """Return the PNG with a chunk that holds the text, so that a test compares it with what would be drawn today."""
    content = b"tEXtTitle\0" + text.encode("latin-1", "replace")
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    return png[:AFTER_HEADER] + chunk + png[AFTER_HEADER:]


def text_in(png: bytes) -> str:
    """Return the text that `with_text` has put into a PNG, empty without one."""
    length, name = struct.unpack(">I4s", png[AFTER_HEADER : AFTER_HEADER + 8])
    content = png[AFTER_HEADER + 8 : AFTER_HEADER + 8 + length]
    return content.partition(b"\0")[2].decode("latin-1") if name == b"tEXt" else ""


def main() -> int:
    """Write all pictures and print their paths; 1 without Chromium, which the reports need."""
    tables = FOLDER / "demo.svg"
    tables.write_text(demo_tables.drawn(), encoding="utf-8")
    print(tables.relative_to(ROOT))
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium here: make tools installs it", file=sys.stderr)
        return 1
    for picture in pictures():
        print(shoot(picture, chromium).relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
