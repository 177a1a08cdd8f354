"""What the functions called while groups were looked after, against their roles. Its name makes it the room's last."""

import pytest

from tests.local.chain import roles

pytestmark = pytest.mark.local

OF_ROUNDS = {
    "disruption-planner",
    "disrupt",
}  # the run that launches and drains is one of the long tests, and so is this of them


@pytest.fixture
def called(stack):
    return roles.recorded(stack, roles.GROUPS)


def test_the_stack_is_of_this_folder_alone(folder):
    assert folder == roles.GROUPS


def test_every_recorded_call_is_allowed_by_its_role(called):
    assert roles.beyond(called) == {}


def test_every_request_with_its_resources_keys_and_tags_is_allowed_by_its_role(stack, called):
    assert called
    assert roles.denied(stack) == []


def test_every_session_in_the_cluster_is_of_a_function_with_access(stack, called):
    assert called
    assert set(roles.in_clusters(stack)) <= roles.WITH_ACCESS
    assert "drain" in roles.in_clusters(stack)


@pytest.mark.parametrize(
    "function",
    [pytest.param(name, marks=pytest.mark.long if name in OF_ROUNDS else ()) for name in roles.judged_in(roles.GROUPS)],
)
def test_no_role_allows_what_nothing_uses_without_a_reason(called, function):
    assert roles.unused(function, called[function]) == set()
