"""States for scenarios, with defaults."""

PAUSE = "arn:aws:states:::aws-sdk:dynamodb:updateItem.waitForTaskToken"
DONE = {"Type": "Succeed"}


def work(world, payload="{% $states.input %}", **more):
    """A task that calls the function."""
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Arguments": {"FunctionName": world.work, "Payload": payload},
        "Output": "{% $states.result.Payload %}",
        "Next": "Done",
        **more,
    }


def pause(**more):
    """A task that stores its token and waits, as the product's own do."""
    return {
        "Type": "Task",
        "Resource": PAUSE,
        "Arguments": {
            "TableName": "leeward-contract",
            "Key": {"pk": {"S": "{% $states.input.key %}"}},
            "UpdateExpression": "SET tok = :t",
            "ConditionExpression": "attribute_not_exists(changed)",
            "ExpressionAttributeValues": {":t": {"S": "{% $states.context.Task.Token %}"}},
        },
        "Output": "{% $states.result %}",
        "Next": "Done",
        **more,
    }


def caught(*errors, to="Caught"):
    """One catcher that keeps the error's name."""
    return [{"ErrorEquals": list(errors), "Output": {"error": "{% $states.errorOutput.Error %}"}, "Next": to}]


def retried(*errors, times=2):
    """One retrier that does not wait long."""
    return [{"ErrorEquals": list(errors), "IntervalSeconds": 1, "BackoffRate": 1, "MaxAttempts": times}]


def each(states, **more):
    """A Map over `items`, one after the other, so that its history has one order."""
    processor = {"StartAt": next(iter(states)), "States": states}
    return {
        "Type": "Map",
        "Items": "{% $states.input.items %}",
        "MaxConcurrency": 1,
        "ItemProcessor": processor,
        "Next": "Done",
        **more,
    }


def side_by_side(*branches, **more):
    """A Parallel state of branches with one state each."""
    made = [{"StartAt": f"Branch{n}", "States": {f"Branch{n}": state}} for n, state in enumerate(branches)]
    return {"Type": "Parallel", "Branches": made, "Next": "Done", **more}
