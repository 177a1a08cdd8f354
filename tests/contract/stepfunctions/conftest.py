"""State machines of the model and of the emulator."""

import pytest

from tests.contract.worlds.live_machines import LiveMachines
from tests.contract.worlds.simulated_machines import SimulatedMachines

PACE = 0.2  # real seconds for one of a state machine's


@pytest.fixture(scope="module")
def emulated_machines(local_aws):
    world = LiveMachines(local_aws)
    local_aws.control("PUT", "time-scale", {"factor": PACE})
    yield world
    local_aws.control("PUT", "time-scale", {"factor": 1})


@pytest.fixture(params=["the model", pytest.param("the emulator", marks=pytest.mark.local)])
def world(request):
    return SimulatedMachines() if request.param == "the model" else request.getfixturevalue("emulated_machines")
