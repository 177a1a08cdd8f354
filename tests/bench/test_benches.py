"""That every benchmark runs, at its smallest size, and that one which fails does not keep the others from running."""

import pytest

from bench import __main__ as benches
from bench.smallest import ON_THE_LOCAL_STACK, SMALLEST


def test_every_benchmark_has_a_smallest_size_or_needs_the_local_stack():
    assert set(SMALLEST) == set(benches.BENCHMARKS) - ON_THE_LOCAL_STACK
    assert set(benches.BENCHMARKS) >= ON_THE_LOCAL_STACK


@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_runs_at_its_smallest_size(name, capsys):
    assert isinstance(SMALLEST[name](), bool)
    assert capsys.readouterr().out


def test_the_others_run_after_one_that_fails(monkeypatch, capsys):
    def fail():
        raise AttributeError("no such port")

    ran = {"first": lambda: True, "broken": fail, "slow": lambda: False, "last": lambda: True}
    monkeypatch.setattr(benches, "BENCHMARKS", ran)
    monkeypatch.setattr(benches, "calibration_seconds", lambda: 0.2)
    assert benches.main([]) == 1
    printed = capsys.readouterr()
    assert "no such port" in printed.err
    assert printed.out.splitlines()[-3:] == ["failed: broken", "", "missed a target: slow"]
    assert benches.main(["first", "last"]) == 0
    assert benches.main(["slow"]) == 1
    assert benches.main(["fast"]) == 2


def test_at_the_smallest_sizes_no_target_counts(monkeypatch):
    monkeypatch.setattr(benches, "SMALLEST", {"slow": lambda: False})
    monkeypatch.setattr(benches, "calibration_seconds", lambda: 0.2)
    assert benches.main(["--smallest"]) == 0
