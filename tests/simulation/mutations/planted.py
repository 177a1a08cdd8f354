"""Every broken build that no seed reaches: each names the tests that notice it."""

from tests.simulation.mutations.plant import Planted
from tests.simulation.mutations.planted_accounts import OF_ACCOUNTS
from tests.simulation.mutations.planted_adapters import OF_ADAPTERS, OF_THE_COMMAND_LINE, OF_THE_LOCAL_STACK
from tests.simulation.mutations.planted_calls import OF_CALLS
from tests.simulation.mutations.planted_drains import OF_DRAINS
from tests.simulation.mutations.planted_drift import OF_DRIFT
from tests.simulation.mutations.planted_emulator import OF_THE_EMULATOR
from tests.simulation.mutations.planted_endings import OF_ENDINGS
from tests.simulation.mutations.planted_healing import OF_FINALIZERS, OF_NOTIFICATIONS, OF_REPAIR, OF_STATE, OF_SYNC
from tests.simulation.mutations.planted_pairs import OF_PAIRS
from tests.simulation.mutations.planted_periods import OF_PERIODS, OF_STEPS
from tests.simulation.mutations.planted_planning import OF_PLANNING
from tests.simulation.mutations.planted_reboots import OF_REBOOTS
from tests.simulation.mutations.planted_requests import OF_REQUESTS
from tests.simulation.mutations.planted_storms import OF_STORMS
from tests.simulation.mutations.planted_upgrades import OF_UPGRADE_EDGES

PLANTED: tuple[Planted, ...] = (
    *OF_ADAPTERS,
    *OF_REQUESTS,
    *OF_THE_LOCAL_STACK,
    *OF_THE_EMULATOR,
    *OF_THE_COMMAND_LINE,
    *OF_UPGRADE_EDGES,
    *OF_PAIRS,
    *OF_PERIODS,
    *OF_STEPS,
    *OF_DRAINS,
    *OF_STORMS,
    *OF_ENDINGS,
    *OF_CALLS,
    *OF_ACCOUNTS,
    *OF_REPAIR,
    *OF_REBOOTS,
    *OF_FINALIZERS,
    *OF_STATE,
    *OF_SYNC,
    *OF_NOTIFICATIONS,
    *OF_PLANNING,
    *OF_DRIFT,
)
