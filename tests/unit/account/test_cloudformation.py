"""A stack that failed is one sentence: the resource, CloudFormation's reason, and the fix."""

import pytest

from account_test.cloudformation import failure_of
from tests.unit.account.stacks import STACK, Stacks, began, event, refusal

CANCELLED = event("CREATE_FAILED", name="Table", reason="Resource creation cancelled")
ROLLED_BACK = event("ROLLBACK_IN_PROGRESS", kind="AWS::CloudFormation::Stack", name=STACK)


def failure(*events):
    """The failure of a stack with these events, the newest first as AWS answers them."""
    return failure_of({"cloudformation": Stacks(["ROLLBACK_COMPLETE"], events)}.__getitem__, STACK)


def because(reason, kind="AWS::Lambda::Function"):
    return failure(event("CREATE_FAILED", kind=kind, name="Drain", reason=reason, physical="leeward-drain"), began())


def test_the_first_failure_counts_and_not_what_was_cancelled_after_it():
    first = event("CREATE_FAILED", kind="AWS::SQS::Queue", name="Queue", reason="no  such\nkey")
    later = event("CREATE_FAILED", name="Other", reason="also wrong")
    found = failure(ROLLED_BACK, CANCELLED, later, first, began())
    assert found.sentence.startswith(f"stack {STACK}: AWS::SQS::Queue Queue is CREATE_FAILED: no such key. Fix: ")


def test_failures_of_earlier_operations_do_not_count():
    earlier = event("CREATE_FAILED", reason="long ago")
    assert failure(event("DELETE_COMPLETE"), began("DELETE"), earlier, began()) is None


def test_a_stack_that_does_not_exist_has_no_failure():
    class Absent:
        def get_paginator(self, _operation):
            raise refusal("ValidationError", f"Stack [{STACK}] does not exist")

    assert failure_of({"cloudformation": Absent()}.__getitem__, STACK) is None


@pytest.mark.parametrize(
    ("reason", "fix", "passes"),
    [
        ("You must wait 60 seconds after deleting a queue before you can create another", "for 60 s", True),
        ("AWS.SimpleQueueService.QueueDeletedRecently", "for 60 s", True),
        ("State Machine is being deleted: 'arn' (Service: Sfn)", "deploy again in some minutes", True),
        ("Rate exceeded (Service: Lambda)", "deploy again", True),
        (
            "Resource of type 'AWS::Logs::LogGroup' with identifier '/aws/lambda/x' already exists.",
            "aws logs delete-log-group",
            False,
        ),
        ("leeward-drain already exists", "under another name", False),
        (
            "The provided execution role does not have permissions to call CreateNetworkInterface on EC2",
            "a defect of Leeward",
            False,
        ),
        (
            "The state machine IAM Role is not authorized to access the Log Destination (Service: Sfn)",
            "a defect of Leeward",
            False,
        ),
        ("Cannot access stream arn. Please ensure the role can perform GetRecords", "a defect of Leeward", False),
        ("decreases account's UnreservedConcurrentExecution below its minimum", "L-B99A9384", False),
        ("The specified KMS key does not exist or is not allowed to be used with Arn", "A KMS key of your own", False),
        ("Secrets Manager can't find the specified secret.", "the secret's ARN and Region", False),
        ("User: arn is not authorized to perform: events:CreateConnection", "service control policy", False),
        (
            "The maximum number of addresses has been reached (Error Code: AddressLimitExceeded)",
            "raise the quota",
            False,
        ),
        ("Cannot delete a policy attached to entities (Error Code: DeleteConflict)", "detach or delete that", False),
        ("The subnet ID 'subnet-1' does not exist", "SUBNETS=", False),
        ("something never seen", f"describe-stack-events --stack-name {STACK}", False),
    ],
)
def test_each_known_reason_has_its_fix_and_what_passes_by_itself_is_known(reason, fix, passes):
    found = because(reason)
    assert "AWS::Lambda::Function Drain (leeward-drain) is CREATE_FAILED" in found.sentence
    assert fix in found.fix
    assert found.passes is passes
    assert "\n" not in found.sentence
