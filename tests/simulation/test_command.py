"""`python -m simulation`: what it prints, its exit codes, wrong command lines."""

import json
import re

import pytest

from leeward.errors import InvalidInputError
from simulation import __main__ as command
from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.features import Feature, drawn

SMALL = ["--hours", "0.2", "--nodes", "5"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "SHORTENED", tmp_path / "shortened")


def test_the_sum_shows_speed_arrivals_faults_and_checks(capsys):
    assert command.main(["--seeds", "2", *SMALL, "--no-faults"]) == 0
    said = capsys.readouterr().out
    for line in ("seeds: 2, ", "virtual days: ", "arrivals: ", "faults: 0", "invariant checks: ", "violations: 0"):
        assert line in said


def test_progress_goes_to_standard_error(capsys, monkeypatch):
    monkeypatch.setattr(command, "REPORT_EVERY", 1)
    command.main(["--seeds", "2", *SMALL, "--no-faults"])
    assert re.fullmatch(r"1 of 2 seeds, .* a minute, 0 violations\n2 of 2 seeds, .*\n", capsys.readouterr().err)


def test_a_run_that_was_ended_goes_on_with_the_seeds_that_it_lacks(capsys, monkeypatch, tmp_path):
    file, run, runs = tmp_path / "finished", Case.run, []
    monkeypatch.setattr(Case, "run", lambda case: runs.append(case.seed) or run(case))
    arguments = [*SMALL, "--no-faults", "--resume", str(file), "--verbose"]
    command.main(["--seeds", "2", *arguments])
    file.write_text(file.read_text()[:-30])  # killed while it wrote the second line
    command.main(["--seeds", "3", *arguments])
    assert runs == [1, 2, 2, 3]
    recorded = capsys.readouterr().out
    command.main(["--seeds", "3", *arguments])
    assert runs == [1, 2, 2, 3]
    assert histories(capsys.readouterr().out) == histories(recorded)[-3:]
    monkeypatch.setattr("simulation.finished.source_digest", lambda: "another source")
    command.main(["--seeds", "1", *arguments])
    assert runs[-1] == 1


def test_violations_are_recorded_as_well(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("leeward.interruption.batch._dead_letter", lambda *_: {})
    arguments = [*SMALL, "--seeds", "2", "--per-hour", "100", "--no-faults", "--no-shorten"]
    assert command.main([*arguments, "--resume", str(tmp_path / "finished")]) == 1
    first = capsys.readouterr().out
    monkeypatch.delattr(Case, "run")
    assert command.main([*arguments, "--resume", str(tmp_path / "finished")]) == 1
    assert [line for line in capsys.readouterr().out.splitlines() if "malformed messages" in line] == [
        line for line in first.splitlines() if "malformed messages" in line
    ]


def histories(text):
    return re.findall(r"seed \d+: .*", text)


def test_the_first_failing_seed_is_shortened_and_can_be_replayed(capsys, monkeypatch):
    monkeypatch.setattr("leeward.interruption.batch._dead_letter", lambda *_: {})  # malformed messages are dropped
    arguments = ["--seeds", "2", *SMALL, "--per-hour", "100", "--no-faults", "--runs", "30"]
    assert command.main(arguments) == 1
    said = capsys.readouterr().out
    assert said.count("shortened in ") == 1
    assert "5 nodes, 1 arrivals, faults: none" in said
    path = said.split("--replay ")[1].split()[0]
    assert len(json.loads((command.SHORTENED / path.rsplit("/")[-1]).read_text())["arrivals"]) == 1
    assert command.main(["--replay", path]) == 1
    assert "VIOLATION" in capsys.readouterr().out


def test_shortening_can_be_switched_off(capsys, monkeypatch):
    monkeypatch.setattr("leeward.interruption.batch._dead_letter", lambda *_: {})
    command.main(["--seeds", "1", *SMALL, "--per-hour", "100", "--no-faults", "--no-shorten"])
    assert "shortened" not in capsys.readouterr().out


def test_the_command_of_a_failing_seed_names_all_that_makes_its_world():
    case = Case(seed=7, hours=0.5, per_hour=60, nodes=9, faults=Faults.none())
    reported = command._command(case)
    assert reported == (
        'python -m simulation --seeds 1 --first-seed 7 --hours 0.5 --features ""'
        " --per-hour 60 --nodes 9 --no-faults --story"
    )


def test_features_can_be_added_to_those_that_each_seed_draws():
    options = command._parser().parse_args(["--seeds", "1", "--features", "drawn, zonal shift"])
    for seed in range(1, 20):
        assert set(command._features(options, seed)) == {*drawn(seed), Feature.ZONAL_SHIFT}


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--seeds", "0"], "found 0, expected a whole number from 1"),
        (["--seeds", "many"], "found many, expected a whole number from 1"),
        (["--first-seed", "-1"], "found -1, expected a whole number from 0"),
        (["--hours", "0"], "found 0, expected a number above 0"),
        (["--hours", "nan"], "found nan, expected a number above 0"),
        (["--per-hour", "x"], "found x, expected a number above 0"),
        (["--nodes", "0"], "found 0, expected a whole number from 1 to 500"),
        (["--seed-count", "4"], "unrecognized arguments: --seed-count"),
    ],
)
def test_a_wrong_command_line_is_reported_in_a_sentence(arguments, reported, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert reported in capsys.readouterr().err


def test_a_replay_of_nothing_is_reported_in_a_sentence(tmp_path):
    with pytest.raises(InvalidInputError, match="no readable file"):
        command.main(["--replay", str(tmp_path / "none.json")])
    (tmp_path / "wrong.json").write_text("{}")
    with pytest.raises(InvalidInputError, match=r"wrong\.json: found no case"):
        command.main(["--replay", str(tmp_path / "wrong.json")])
