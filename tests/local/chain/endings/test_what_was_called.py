"""What the functions called while nodes came to their end, against their roles. Its name makes it the room's last."""

import pytest

from infra.permissions import PERMISSIONS
from tests.local.chain import roles

pytestmark = pytest.mark.local


@pytest.fixture
def called(stack):
    return roles.recorded(stack, roles.ENDINGS)


def test_the_stack_is_of_this_folder_alone(folder):
    assert folder == roles.ENDINGS


def test_every_recorded_call_is_allowed_by_its_role(called):
    assert roles.beyond(called) == {}


def test_every_request_with_its_resources_keys_and_tags_is_allowed_by_its_role(stack, called):
    assert called
    assert roles.denied(stack) == []


def test_every_session_in_the_cluster_is_of_a_function_with_access(stack, called):
    assert called
    assert set(roles.in_clusters(stack)) <= roles.WITH_ACCESS
    assert "drain" in roles.in_clusters(stack)


@pytest.mark.parametrize("function", roles.judged_in(roles.ENDINGS))
def test_no_role_allows_what_nothing_uses_without_a_reason(called, function):
    assert roles.unused(function, called[function]) == set()


def test_every_function_is_judged_in_one_of_the_rooms():
    assert set(roles.JUDGED_IN) == set(PERMISSIONS)
    assert set(roles.JUDGED_IN.values()) == {roles.ENDINGS, roles.GROUPS}
