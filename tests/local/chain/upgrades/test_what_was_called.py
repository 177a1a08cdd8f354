"""What the functions called during these upgrades, against their roles. Its name makes it the folder's last."""

import pytest

from tests.local.chain import roles

pytestmark = [pytest.mark.local, pytest.mark.long]


def test_every_call_with_its_resources_keys_and_tags_is_allowed_by_its_role(stack, folder):
    called = roles.recorded(stack, folder)
    assert "upgrade" in called
    assert roles.beyond(called) == {}
    assert roles.denied(stack) == []
