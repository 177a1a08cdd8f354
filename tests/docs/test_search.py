"""The search of the built site, by the theme's own worker: questions have their answers among the first three pages."""

import json
import subprocess
from pathlib import Path

from documentation.hooks import SEARCH
from tests.docs.questions import QUESTIONS
from tests.tools import need

FIRST = 3


def answers(site, questions):
    """Return the pages of each answer, best first."""
    command = [need("node"), "tests/docs/search.js", str(site)]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=True)
    return [[sections[0].partition("#")[0] for sections in pages] for pages in json.loads(done.stdout)]


def test_each_question_of_an_operator_is_answered_on_the_first_screen(site):
    assert len(QUESTIONS) >= 60
    assert [page for pages in QUESTIONS.values() for page in pages if not (site / page).is_file()] == []
    wrong = [
        f"{question}: {', '.join(pages[:FIRST]) or 'nothing'}"
        for (question, expected), pages in zip(QUESTIONS.items(), answers(site, list(QUESTIONS)), strict=True)
        if not expected & set(pages[:FIRST])
    ]
    assert "\n".join(wrong) == ""


def test_pages_without_answers_are_left_out_of_the_search(site):
    left_out = {page.replace(".md", ".html") for page, how in SEARCH.items() if how.get("exclude")}
    shown = {page for pages in answers(site, ["licence", "benchmark", "test", "proof", "account"]) for page in pages}
    assert "designs/simulation.html" in shown
    assert left_out & shown == set()


def test_every_setting_of_the_search_is_about_a_page():
    pages = [str(page.relative_to("docs")) for page in Path("docs").rglob("*.md")] + ["project/changelog.md"]
    assert [start for start in SEARCH if not any(page.startswith(start) for page in pages)] == []
