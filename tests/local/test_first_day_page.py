"""The page of the first day tells the story that the long test runs, without what differs between runs."""

import pytest

from tests.local.first_day_page import PAGE, Replaced, differences, images, shown
from tests.local.first_day_story import STORY, Command

KEPT = PAGE.read_text(encoding="utf-8")
EXACT = next(command for chapter in STORY for command in chapter.commands if command.exact)


def test_the_page_has_every_text_and_command_of_the_story():
    """Otherwise: make tutorial."""
    (image,) = images(KEPT)
    assert differences(KEPT, None, image) == []


@pytest.mark.parametrize("part", [STORY[0].title, STORY[2].before, EXACT.line])
def test_a_page_that_lacks_a_part_is_noticed(part):
    (image,) = images(KEPT)
    assert len(differences(KEPT.replace(part, ""), None, image)) == 1


def test_an_output_that_should_be_the_same_in_every_run_is_compared():
    (image,) = images(KEPT)
    outputs = {command.line: "something else" for chapter in STORY for command in chapter.commands}
    lost = differences(KEPT, outputs, image)
    assert len(lost) == sum(command.exact for chapter in STORY for command in chapter.commands)


def test_ids_and_times_are_replaced_and_the_same_id_stays_the_same():
    replaced = Replaced()
    first = replaced.text("\x1b[1mi-0123456789abcdef0\x1b[0m at 2026-11-24T13:04:22.926Z  \n")
    assert first == "i-0001 at 2026-01-01T12:00:00Z"
    assert replaced.text("2026-11-24T15:04:32Z") == "2026-01-01T14:00:10Z"
    assert replaced.text("i-1123456789abcdef0 i-0123456789abcdef0-1") == "i-0002 i-0001-1"


def test_only_the_lines_that_a_command_shows_stand_on_the_page():
    assert shown(Command(line="cdk deploy", shown="done"), "begin\ndone\n2 done") == "done\n2 done"
