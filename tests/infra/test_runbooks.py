"""Each alarm has a runbook, each runbook an alarm, and an operator finds commands in it that exist."""

import re
import shlex
from pathlib import Path

import pytest

from leeward.cli.main import build_parser
from tests.infra.conftest import EVERYTHING
from tests.infra.test_operations import alarms

PAGE = Path("docs/runbooks.md").read_text()
PARTS = ("Means", "Check", "Fix", "If you do nothing")
SECTIONS = {
    section.partition("\n")[0]: section
    for section in re.split(r"^##+ ", PAGE, flags=re.MULTILINE)[1:]
    if re.fullmatch(r"[a-z-]+", section.partition("\n")[0])
}
PLACEHOLDERS = {"NODE": "node-a", "NAME": "blue", "GROUP": "web", "EXECUTION": "i-0abc-1", "FILE": "event.json"}


def anchors(text):
    """Anchors of a page, as Git hosts and the documentation's site make them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def part_of(section, name):
    """Text from one bold word to the next."""
    return section.partition(f"**{name}**")[2].partition("\n**")[0]


def commands(text):
    """Lines of the indented blocks."""
    return [line.strip() for line in text.splitlines() if line.startswith("    ")]


def test_each_alarm_has_a_runbook_and_each_runbook_an_alarm(template):
    assert sorted(SECTIONS) == sorted(name.removeprefix("leeward-") for name in alarms(template))


def test_the_description_of_each_alarm_ends_with_its_section(template):
    for name, alarm in alarms(template).items():
        page, _, anchor = alarm["AlarmDescription"].rpartition(" Runbook: ")[2].partition("#")
        assert anchor == name.removeprefix("leeward-")
        assert anchor in anchors(Path(page).read_text())


def test_the_page_of_an_operator_s_own_is_linked(everything):
    page = EVERYTHING["runbooks"]
    linked = [alarm["AlarmDescription"].rpartition(" Runbook: ")[2] for alarm in alarms(everything).values()]
    assert sorted(linked) == sorted(f"{page}#{name}" for name in SECTIONS)


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_a_runbook_says_what_it_means_what_to_check_what_to_do_and_what_follows_otherwise(name):
    found = re.findall(r"^\*\*(.+?)\*\*: ", SECTIONS[name], re.MULTILINE)
    assert tuple(found) == PARTS
    assert all(len(part_of(SECTIONS[name], part).split()) >= 4 for part in PARTS)


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_a_runbook_has_a_command_with_which_to_check(name):
    assert commands(part_of(SECTIONS[name], "Check"))


def test_the_commands_of_leeward_are_ones_that_the_command_line_takes():
    parser, typed = build_parser(), [line for line in commands(PAGE) if line.startswith("leeward ")]
    assert len(typed) > 10
    for line in typed:
        words = [PLACEHOLDERS.get(word, word) for word in shlex.split(line)[1:]]
        assert parser.parse_args(words)


def test_links_lead_to_sections_that_exist():
    pages = {path.name: path.read_text() for path in Path("docs").glob("*.md")} | {"": PAGE}
    targets = re.findall(r"\]\(([\w-]+\.md)?#([\w-]+)\)", PAGE)
    assert targets
    assert [(page, anchor) for page, anchor in targets if anchor not in anchors(pages[page])] == []


def test_what_other_pages_link_in_the_runbooks_exists():
    linked = re.findall(r"runbooks\.md#([\w-]+)", "".join(path.read_text() for path in Path("docs").rglob("*.md")))
    assert set(linked) <= anchors(PAGE)
    assert linked
