"""Calls of the functions of a room, compared with their roles: tests that each room runs last."""

import pytest

from tests.local.chain import roles


class WhatWasCalled:
    """`room`: the folder whose stack they judge."""

    room = ""

    @pytest.fixture
    def called(self, stack):
        return roles.recorded(stack, self.room)

    def test_the_stack_is_of_this_folder_alone(self, folder):
        assert folder == self.room

    def test_every_recorded_call_is_allowed_by_its_role(self, called):
        assert roles.beyond(called) == {}

    def test_every_request_with_its_resources_keys_and_tags_is_allowed_by_its_role(self, stack, called):
        assert called
        assert roles.denied(stack) == []

    def test_every_session_in_the_cluster_is_of_a_function_with_access(self, stack, called):
        assert called
        assert set(roles.in_clusters(stack)) <= roles.WITH_ACCESS
        assert "drain" in roles.in_clusters(stack)
