"""What the functions called while nodes came to their end, against their roles. Its name makes it the room's last."""

import pytest

from infra.permissions import PERMISSIONS
from tests.local.chain import roles
from tests.local.chain.what_was_called import WhatWasCalled

pytestmark = pytest.mark.local


class TestWhatWasCalled(WhatWasCalled):
    room = roles.ENDINGS

    @pytest.mark.parametrize("function", roles.judged_in(roles.ENDINGS))
    def test_no_role_allows_what_nothing_uses_without_a_reason(self, called, function):
        assert roles.unused(function, called[function]) == set()


def test_every_function_is_judged_in_one_of_the_rooms():
    assert set(roles.JUDGED_IN) == set(PERMISSIONS)
    assert set(roles.JUDGED_IN.values()) == {roles.ENDINGS, roles.GROUPS}
