"""A run replays from seed and number, ends what takes too long, sees every exception, and goes on where it was."""

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest

from fuzz import __main__ as command
from fuzz import progress
from fuzz.progress import Progress
from fuzz.runner import Result, Runner, chance_of
from fuzz.target import Disagreement, Target, shorter_texts
from fuzz.targets import TARGETS
from fuzz.targets.reports import Reports
from fuzz.targets.reports import hold as hold_page
from fuzz.watchdog import LIMIT, Watchdog


class Letters(Target[str]):
    """Texts of five letters; `fails` says what happens with one."""

    name = "letters"
    goal = 50
    short = 50
    closed = 0

    def __init__(self, fails=lambda text: None):
        self.fails, self.seen = fails, []

    def generate(self, chance):
        return "".join(chance.choice("abc") for _ in range(5))

    def check(self, value):
        self.seen.append(value)
        self.fails(value)

    def smaller(self, value):
        return shorter_texts(value)

    def close(self):
        Letters.closed += 1


def raising(error, holds):
    def fails(text):
        if holds(text):
            raise error

    return fails


@pytest.fixture
def letters(monkeypatch, tmp_path):
    """`make fuzz` with one target, whose files are in a folder of the test."""

    def of(fails=lambda text: None):
        monkeypatch.setattr(command, "TARGETS", {"letters": lambda: Letters(fails)})
        monkeypatch.chdir(tmp_path)

    return of


def test_an_input_follows_from_target_seed_and_number_alone():
    whole, part = Letters(), Letters()
    Runner(whole, seed=7).run(0, 30)
    Runner(part, seed=7).run(20, 10)
    assert part.seen == whole.seen[20:]
    assert Runner(Letters(), seed=8).value_of(20) != Runner(Letters(), seed=7).value_of(20)


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_makes_the_same_inputs_again(name):
    first, second = TARGETS[name](), TARGETS[name]()
    try:
        for number in range(40):
            made = [json.dumps(one.generate(chance_of(name, 3, number))) for one in (first, second)]
            made = [re.sub(r"leeward-fuzz-\w+", "", text) for text in made]  # the folder of the process
            assert made[0] == made[1]
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError(), SystemExit(3), MemoryError()])
def test_whatever_a_reader_raises_is_a_failure_made_smaller(error):
    result = Runner(Letters(raising(error, lambda text: "b" in text)), seed=1).run(0, 100)
    assert result.failed == sum("b" in Runner(Letters(), seed=1).value_of(number) for number in range(100))
    assert {failure.kind.split(" ")[0] for failure in result.failures} == {type(error).__name__}
    assert result.failures[0].smallest == "b"
    assert len(result.failures) == 3  # a few of a kind are kept


def test_a_disagreement_is_a_failure():
    fails = raising(Disagreement("order: found 1, expected 2"), lambda text: text.startswith("a"))
    (kind,) = Runner(Letters(fails), seed=1).run(0, 20).kinds
    assert kind == "Disagreement: order"


def never_ending(text):
    if "aa" in text:
        while True:
            with suppress(Exception):  # a handler this broad must not keep the input alive
                sum(range(1000))


def test_an_input_past_its_time_is_ended_named_and_the_run_goes_on():
    target = Letters(never_ending)
    result = Runner(target, seed=1, watchdog=Watchdog(limit=0.05)).run(0, 30)
    assert result.inputs == 30
    assert result.failed == sum("aa" in text for text in target.seen)
    assert all(failure.kind.startswith("TooSlow") for failure in result.failures)
    assert result.slowest < 1


def test_the_limit_is_two_seconds_of_cpu_time():
    assert LIMIT == Watchdog().limit == 2


def test_a_second_run_goes_on_where_the_first_has_stopped(letters, capsys):
    letters()
    assert command.main(["--inputs", "20"]) == 0
    assert progress.load("letters", 1).inputs == 20
    assert command.main([]) == 0
    assert progress.load("letters", 1).inputs == 50
    assert command.main([]) == 0  # there is nothing left to do
    assert capsys.readouterr().out.splitlines()[-1].startswith("letters: 50 inputs of 50, 0 failed")


def test_a_replay_leaves_the_progress_alone(letters):
    letters()
    assert command.main(["--first", "10", "--inputs", "5"]) == 0
    assert progress.load("letters", 1) == Progress()


def test_a_failure_is_kept_reported_and_can_be_read_again(letters, capsys):
    letters(raising(ValueError("b"), lambda text: "b" in text))
    assert command.main([]) == 1
    assert command.main([]) == 1  # also when the inputs are all read
    files = sorted(Path("build/fuzz/failures").glob("letters-*.json"))
    assert len(files) == 3
    kept = [json.loads(file.read_text()) for file in files]
    assert {"b"} <= {document["smallest"] for document in kept}
    assert all("ValueError: b" in document["trace"] for document in kept)
    capsys.readouterr()
    assert command.main(["--again", str(files[0])]) == 1
    assert "ValueError" in capsys.readouterr().out
    letters()
    assert command.main(["--again", str(files[0])]) == 0
    assert command.main([]) == 0  # mended: the files go
    assert not list(Path("build/fuzz/failures").glob("letters-*.json"))


def test_every_target_is_closed_and_an_unknown_one_is_refused(letters, capsys):
    letters(raising(ValueError("b"), lambda text: "b" in text))
    before = Letters.closed
    command.main(["--inputs", "5"])
    assert Letters.closed == before + 1
    assert command.main(["--target", "nothing"]) == 2
    assert capsys.readouterr().err == "--target: found nothing, expected some of letters\n"


def test_progress_adds_up_and_keeps_the_slowest():
    first = Progress().plus(Result(inputs=5, cpu=1.0, slowest=0.5, slowest_number=3))
    second = first.plus(Result(inputs=2, cpu=0.5, slowest=0.1, slowest_number=6))
    assert second == Progress(inputs=7, cpu=1.5, slowest=0.5, slowest_number=3)


@pytest.mark.parametrize(
    "html",
    [
        "<p><zq onload=x></p>",
        '<p onclick="x">a</p>',
        '<a href="javascript:x">a</a>',
        '<a href="https://x">a</a>',
        "<script>1</script>",
        "<p>1 < 2</p>",
        "<p>a",
        "<p></li></p>",
    ],
)
def test_markup_that_no_drawing_makes_is_found(html):
    with pytest.raises(Disagreement):
        hold_page(html)


def test_a_page_is_its_own_markup():
    target = Reports()
    target.check(json.loads(Path("fuzz/corpus/reports/run.json").read_text()))
