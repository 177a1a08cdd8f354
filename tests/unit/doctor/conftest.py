"""What the tests of the checks take."""

import pytest

from tests.unit.doctor.patient import Patient


@pytest.fixture
def patient():
    return Patient()
