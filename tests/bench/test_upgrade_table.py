"""The benchmark of upgrades on a fleet of six nodes: what it counts, and when it ends."""

from dataclasses import replace

import pytest

from bench.upgrade import Row, leeward, row, shown
from bench.upgrade_fleet import Figures
from bench.upgrade_measure import Measured
from leeward.upgrade import run

NOTHING = Measured(
    seconds=100.0,
    refused=0,
    moved_again=0,
    surge_hours=0.0,
    most_surge=0,
    most_unavailable=1,
    exceeded=0,
    pending=0.0,
)


def a_row(nodes=100, ours=100.0, eks=250.0, **given):
    return Row(
        **{
            "nodes": nodes,
            "unavailable": "1",
            "ours": replace(NOTHING, seconds=ours),
            "eks": replace(NOTHING, seconds=eks),
            "kinder": eks,
            "at_peak": None,
            "bound": ours,
            "cpu": 0.0,
            **given,
        }
    )


def test_both_sides_roll_the_fleet_and_only_ours_moves_no_pod_twice(capsys, monkeypatch):
    monkeypatch.setenv("TRACE", "1")
    found = row(Figures.read(), 6, "50%")
    assert (found.ours.moved_again, found.ours.exceeded, found.ours.pending) == (0, 0, 0.0)
    assert found.ours.most_unavailable <= 3
    assert found.eks.moved_again > 0
    assert found.bound <= found.ours.seconds < found.eks.seconds
    assert found.at_peak is None or found.at_peak.most_surge <= found.eks.most_surge
    shown(found)
    said = capsys.readouterr().out
    assert "6 nodes, maxUnavailable 50%" in said
    assert "drained to terminating: 60." in said


def test_an_execution_that_hands_over_to_another_is_not_the_end(monkeypatch):
    figures = Figures.read()
    in_one, bound = leeward(figures, 6, "50%")
    monkeypatch.setattr(run, "MOST_PAUSES", 6)
    in_several, _ = leeward(figures, 6, "50%")
    assert bound <= in_one.seconds <= in_several.seconds


@pytest.mark.parametrize(
    ("given", "missed"),
    [
        ({}, []),
        ({"eks": 110.0}, ["0.8 x EKS, which is less than the bound"]),
        ({"eks": 110.0, "bound": 80.0}, ["0.8 x EKS"]),
        ({"bound": 79.0}, ["1.25 x the bound"]),
        ({"unavailable": "10%", "eks": 190.0, "bound": 93.0}, ["0.5 x EKS"]),
        ({"unavailable": "10%", "eks": 250.0, "bound": 92.0}, ["1.08 x the bound"]),
        ({"nodes": 20, "eks": 110.0}, []),
        ({"at_peak": replace(NOTHING, seconds=150.0), "eks": 200.0}, ["0.6 x EKS at its own peak surge"]),
    ],
    ids=[
        "all are met",
        "cannot be met",
        "EKS",
        "the bound",
        "half of EKS",
        "the bound at 10 %",
        "a size without a target",
        "at EKS' peak",
    ],
)
def test_what_is_missed_is_said(given, missed):
    assert a_row(**given).missed == missed
