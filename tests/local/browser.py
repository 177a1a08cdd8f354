"""Chromium without a window: what it makes of a page."""

import json
import os
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.tools import need

QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--disable-dev-shm-usage"),
)
SECONDS = 240
VOID = {"meta", "br", "hr"}


class Dom(HTMLParser):
    """Chromium's serialized document: its elements with the text that stands in each."""

    def __init__(self, text):
        super().__init__()
        self.found, self._open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", "under": [one["tag"] for one in self._open], **dict(attributes)}
        self.found.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag):
        while self._open and self._open.pop()["tag"] != tag:
            pass

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def tags(self, tag, word=None):
        return [e for e in self.found if e["tag"] == tag and (word is None or word in e.get("class", "").split())]


@pytest.fixture
def chromium(tmp_path):
    """Runs Chromium once, with a profile of its own; without one, a failure in CI, elsewhere skipped."""
    binary = need("chromium")

    def run(html, *arguments):
        source = tmp_path / "page.html"
        source.write_text(html, encoding="utf-8")
        command = [binary, *QUIET, f"--user-data-dir={tmp_path / 'profile'}", *arguments, source.as_uri()]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


# What a reader of the page would see: its width, the texts with their sizes and boxes, glyphs, colours.
MEASURE = Path(__file__).with_name("measure.js").read_text(encoding="utf-8")


def measured(chromium, html, width, scheme="light"):
    """Lay the page out at that width, as on a screen that prefers the scheme, and return what `measure.js` found.

    The page is in a frame, because a window of Chromium cannot be as narrow as a phone.
    """
    frame = (
        f'<iframe width="{width}" height="900" style="border:0;color-scheme:{scheme}" srcdoc="{escape(html)}"></iframe>'
    )
    head = f"<!DOCTYPE html><meta charset=utf-8><meta name=color-scheme content={scheme}>"
    outer = f"{head}{frame}<pre></pre><script>{MEASURE}</script>"
    dark = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    found = Dom(chromium(outer, "--window-size=1600,1000", *dark, "--dump-dom").stdout)
    return json.loads(found.tags("pre")[0]["text"])
