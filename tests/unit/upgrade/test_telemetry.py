"""Metrics of an upgrade that has ended."""

import pytest

from leeward.upgrade.handler import stepped
from leeward.upgrade.run import UpgradeNext, UpgradeRun
from tests.emitted import points, series_of

UPGRADE = {"service": "upgrade"}


@pytest.mark.parametrize(
    ("step", "result", "metric"),
    [
        ("restore", UpgradeNext.UPGRADED, "GroupsUpgraded"),
        ("restore", UpgradeNext.ROLLED_BACK, "GroupsUpgraded"),
        ("note-failure", UpgradeNext.FAILED, "UpgradesFailed"),
    ],
)
def test_an_upgrade_that_has_ended_is_counted_for_its_cluster_and_group(capsys, step, result, metric):
    stepped(step, UpgradeRun(group="web", execution="web-1", next=result, cluster="blue"))
    assert series_of(capsys.readouterr().out, metric) == [
        UPGRADE,
        UPGRADE | {"cluster": "blue"},
        UPGRADE | {"cluster": "blue", "group": "web"},
    ]


def test_a_step_of_an_upgrade_that_goes_on_counts_nothing(capsys):
    stepped("check", UpgradeRun(group="web", execution="web-1", next=UpgradeNext.CHECK, cluster="blue"))
    assert list(points(capsys.readouterr().out)) == []
