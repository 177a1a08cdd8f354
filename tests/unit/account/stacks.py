"""CloudFormation, CloudWatch Logs and EC2 as the deletion of a stack meets them."""

from botocore.exceptions import ClientError

STACK = "test-0abc12-Leeward"


def refusal(code, message=""):
    return ClientError({"Error": {"Code": code, "Message": message or code}}, "Call")


def event(status, kind="AWS::SQS::Queue", name="Queue", reason="", physical=""):
    return {
        "ResourceStatus": status,
        "ResourceType": kind,
        "LogicalResourceId": name,
        "PhysicalResourceId": physical,
        "ResourceStatusReason": reason,
    }


def began(operation="CREATE"):
    return event(f"{operation}_IN_PROGRESS", kind="AWS::CloudFormation::Stack", name=STACK, reason="User Initiated")


class Pages:
    def __init__(self, pages):
        self.pages = pages

    def paginate(self, **asked):
        return self.pages(**asked)


class Stacks:
    """One stack; `statuses`: what DescribeStacks answers, one after the other, None: it is gone."""

    def __init__(self, statuses, events=()):
        self.statuses, self.events, self.deletions = list(statuses), list(events), 0

    def describe_stacks(self, **_):
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if status is None:
            raise refusal("ValidationError", f"Stack with id {STACK} does not exist")
        return {"Stacks": [{"StackStatus": status}]}

    def delete_stack(self, **_):
        self.deletions += 1

    def get_paginator(self, _operation):
        return Pages(lambda **_: [{"StackEvents": self.events}])


class Logs:
    """CloudWatch Logs; `late` come into being once something was deleted, as a last call of a function makes them."""

    def __init__(self, names=(), late=()):
        self.names, self.late = set(names), set(late)

    def get_paginator(self, _operation):
        return Pages(self._listed)

    def _listed(self, logGroupNamePrefix):
        return [{"logGroups": [{"logGroupName": n} for n in self.names if n.startswith(logGroupNamePrefix)]}]

    def delete_log_group(self, *, logGroupName):
        self.names.discard(logGroupName)
        self.names, self.late = self.names | self.late, set()


class Interfaces:
    """Network interfaces of functions: by id the number of looks after which each is available."""

    def __init__(self, looks):
        self.looks, self.asked = dict(looks), []

    def get_paginator(self, _operation):
        return Pages(self._listed)

    def _listed(self, Filters):
        self.asked.append({one["Name"]: one["Values"] for one in Filters})
        found = [
            {"NetworkInterfaceId": name, "Status": "in-use" if left else "available"}
            for name, left in self.looks.items()
        ]
        self.looks = {name: max(0, left - 1) for name, left in self.looks.items()}
        return [{"NetworkInterfaces": found}]

    def delete_network_interface(self, *, NetworkInterfaceId):
        del self.looks[NetworkInterfaceId]
