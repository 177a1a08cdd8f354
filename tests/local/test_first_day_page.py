"""The page of the first day tells the story that the long test runs, without what differs between runs."""

import re

import pytest

from local.aws.settings import KUBERNETES_VERSION
from tests.local.first_day_page import PAGE, Replaced, differences, shown
from tests.local.first_day_story import STORY, Command

KEPT = PAGE.read_text(encoding="utf-8")
EXACT = next(command for chapter in STORY for command in chapter.commands if command.exact)


def test_the_page_has_every_text_and_command_of_the_story():
    """Otherwise: make tutorial."""
    assert differences(KEPT, None) == []


def test_the_page_has_a_single_version_of_kubernetes():
    versions = set(re.findall(r"v(1\.\d\d)\.\d|al2023@(1\.\d\d)", KEPT))
    assert {kubelet or image for kubelet, image in versions} == {KUBERNETES_VERSION}


@pytest.mark.parametrize("part", [STORY[0].title, STORY[2].before, EXACT.line])
def test_a_page_that_lacks_a_part_is_noticed(part):
    assert len(differences(KEPT.replace(part, ""), None)) == 1


def test_an_output_that_should_be_the_same_in_every_run_is_compared():
    outputs = {command.line: "something else" for chapter in STORY for command in chapter.commands}
    lost = differences(KEPT, outputs)
    assert len(lost) == sum(command.exact for chapter in STORY for command in chapter.commands)


def test_ids_and_times_are_replaced_and_the_same_id_stays_the_same():
    replaced = Replaced()
    first = replaced.text("\x1b[1mi-0123456789abcdef0\x1b[0m at 2026-11-24T13:04:22.926Z  \n")
    assert first == "i-0001 at 2026-01-01T12:00:00Z"
    assert replaced.text("2026-11-24T15:04:32Z") == "2026-01-01T14:00:10Z"
    assert replaced.text("i-1123456789abcdef0 i-0123456789abcdef0-1") == "i-0002 i-0001-1"


def test_only_the_lines_that_a_command_shows_stand_on_the_page():
    assert shown(Command(line="cdk deploy", shown="done"), "begin\ndone\n2 done") == "done\n2 done"
