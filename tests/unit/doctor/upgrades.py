"""An upgrade's record with defaults."""

from datetime import datetime

from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from tests.fakes.builders import CLUSTER, GROUP


def an_upgrade(*, began: datetime, execution: str) -> UpgradeRecord:
    return UpgradeRecord(
        group=GROUP,
        target=UpgradeTarget(),
        strategy=Strategy.DEFAULT,
        desired=1,
        maximum=2,
        began=began,
        cluster=CLUSTER,
        execution=execution,
    )
