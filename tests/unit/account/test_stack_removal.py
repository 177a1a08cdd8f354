"""A stack is deleted until it is gone, with what AWS leaves of its functions."""

import pytest

from account_test import stack_removal
from account_test.errors import AccountTestError
from account_test.journal import Made
from account_test.removal import Remover
from tests.unit.account.stacks import STACK, Interfaces, Logs, Stacks, began, event

BLOCKED = event("DELETE_FAILED", kind="AWS::Lambda::Function", name="Drain", reason="the interface is in use")


def removed(clients, **more):
    said = []
    made = Made(kind="stack", name=STACK, more=more)
    Remover(aws=clients.__getitem__, kube=None, pause=0, say=said.append).remove(made)
    return said


def test_a_stack_is_waited_for_and_one_that_is_gone_is_no_error():
    stacks = Stacks(["DELETE_IN_PROGRESS", "DELETE_IN_PROGRESS", None])
    assert removed({"cloudformation": stacks}) == []
    assert removed({"cloudformation": Stacks([None])}) == []


def test_a_deletion_that_failed_is_repeated_and_its_reason_is_said():
    stacks = Stacks(["DELETE_FAILED", "DELETE_IN_PROGRESS", None], events=[BLOCKED, began("DELETE")])
    (line,) = removed({"cloudformation": stacks})
    assert "AWS::Lambda::Function Drain is DELETE_FAILED: the interface is in use" in line
    assert stacks.deletions == 2


def test_a_deletion_that_fails_every_time_names_the_resource():
    stacks = Stacks(["DELETE_FAILED"], events=[BLOCKED, began("DELETE")])
    with pytest.raises(AccountTestError, match=r"AWS::Lambda::Function Drain is DELETE_FAILED.*describe-stack-events"):
        removed({"cloudformation": stacks})
    assert stacks.deletions == stack_removal.TRIES


def test_a_stack_that_does_not_go_is_given_up_after_an_hour(monkeypatch):
    monkeypatch.setattr(stack_removal, "DELETE_SECONDS", -1)
    with pytest.raises(AccountTestError, match=f"stack {STACK} is DELETE_IN_PROGRESS for"):
        removed({"cloudformation": Stacks(["DELETE_IN_PROGRESS"])})


def test_a_long_deletion_says_how_it_stands(monkeypatch):
    monkeypatch.setattr(stack_removal, "REPORT_SECONDS", -1)
    said = removed({"cloudformation": Stacks(["DELETE_IN_PROGRESS", None])})
    assert said == [f"stack {STACK} is DELETE_IN_PROGRESS for 0 min; network interfaces of functions take 40"]


def test_log_groups_that_come_into_being_after_the_stack_has_gone_are_removed():
    logs = Logs(
        {"/aws/lambda/test-0abc12-leeward-drain", "/aws/lambda/other"}, {"/aws/lambda/test-0abc12-leeward-sync"}
    )
    removed({"logs": logs, "cloudformation": Stacks([None])}, logs="/aws/lambda/test-0abc12-leeward-")
    assert logs.names == {"/aws/lambda/other"}


def test_network_interfaces_are_waited_for_and_deleted_once_they_are_available():
    ec2 = Interfaces({"eni-1": 0, "eni-2": 2})
    more = {"subnets": "subnet-1,subnet-2", "functions": "test-0abc12-leeward-"}
    assert removed({"ec2": ec2, "cloudformation": Stacks([None])}, **more) == []
    assert ec2.looks == {}
    assert ec2.asked[0] == {
        "subnet-id": ["subnet-1", "subnet-2"],
        "description": ["AWS Lambda VPC ENI-test-0abc12-leeward-*"],
    }


def test_an_interface_that_another_function_uses_is_named_and_left(monkeypatch):
    monkeypatch.setattr(stack_removal, "INTERFACE_SECONDS", -1)
    ec2 = Interfaces({"eni-1": 99})
    more = {"subnets": "subnet-1", "functions": "test-0abc12-leeward-"}
    assert removed({"ec2": ec2, "cloudformation": Stacks([None])}, **more) == ["network interfaces stay: eni-1"]


def test_a_stack_of_another_account_is_deleted_with_the_role_there():
    class Aws:
        def assumed(self, role):
            assert role == "arn:aws:iam::222233334444:role/deployer"
            return {"cloudformation": Stacks([None])}.__getitem__

        def arguments(self):
            return "--region eu-west-1"

    made = Made(kind="stack", name=STACK, more={"role": "arn:aws:iam::222233334444:role/deployer"})
    remover = Remover(aws=Aws(), kube=None, pause=0)
    remover.remove(made)
    assert remover.command(made).endswith("# with credentials of arn:aws:iam::222233334444:role/deployer")
