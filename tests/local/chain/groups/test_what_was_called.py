"""What the functions called while groups were looked after, against their roles. Its name makes it the room's last."""

import pytest

from tests.local.chain import roles
from tests.local.chain.what_was_called import WhatWasCalled

pytestmark = pytest.mark.local

# the run that launches and drains is one of the long tests, and so is this of its functions
OF_ROUNDS = {"disruption-planner", "disrupt"}
JUDGED = [
    pytest.param(name, marks=pytest.mark.long if name in OF_ROUNDS else ()) for name in roles.judged_in(roles.GROUPS)
]


class TestWhatWasCalled(WhatWasCalled):
    room = roles.GROUPS

    @pytest.mark.parametrize("function", JUDGED)
    def test_no_role_allows_what_nothing_uses_without_a_reason(self, called, function):
        assert roles.unused(function, called[function]) == set()
