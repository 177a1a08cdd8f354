"""Worst case of each permission on a wildcard resource that is not a read, if the function ran foreign code.

`findings.py` adds it to the cdk-nag acknowledgement of the wildcard, where a review of the stack finds it. The
permission's reason names what limits it (a tag, a condition); the worst case is what the limit leaves possible.
"""

from collections.abc import Mapping

_GROUPS = "of the configured clusters"
_OF_TEMPLATES = "from templates of the configured clusters: cost, and user data or image of its choice with a node role"
_NO_CODE = "no code of ours runs with this role, Step Functions alone does"
_VPC = "can do nothing with it: the condition denies it to the function's own code"

RISKS: Mapping[str, str] = {
    "autoscaling:CompleteLifecycleAction": f"ends any instance {_GROUPS} that a hook holds, without a drain",
    "autoscaling:RecordLifecycleActionHeartbeat": f"holds instances {_GROUPS} in their hooks, 48 hours at most",
    "autoscaling:DeleteLifecycleHook": f"removes any hook of groups {_GROUPS}: instances end without a drain",
    "autoscaling:PutLifecycleHook": f"puts a hook on groups {_GROUPS} that abandons every launch",
    "autoscaling:LaunchInstances": f"launches instances in groups {_GROUPS}, up to their MaxSize",
    "autoscaling:ResumeProcesses": f"resumes scaling processes of groups {_GROUPS} that their owner has suspended",
    "autoscaling:SuspendProcesses": f"keeps groups {_GROUPS} from launching and from replacing instances",
    "autoscaling:TerminateInstanceInAutoScalingGroup": f"ends every instance of groups {_GROUPS}, without a drain",
    "autoscaling:UpdateAutoScalingGroup": f"scales groups {_GROUPS} to zero or to any size, and so to any cost",
    "ec2:RebootInstances": "reboots every instance tagged for the configured clusters, undrained",
    "ec2:CreateFleet": f"launches instances {_OF_TEMPLATES}",
    "ec2:RunInstances": f"launches instances {_OF_TEMPLATES}",
    "ec2:CreateTags": "puts any tag on what it launches, for example the one of another group's owner",
    "ec2:CreateLaunchTemplateVersion": (
        f"adds a version with any image, user data and instance profile to templates {_GROUPS}, which a group that "
        "follows $Latest launches at its next launch"
    ),
    "eks:UpdateNodegroupVersion": f"rolls every managed node group {_GROUPS}, by force past its budgets",
    "states:SendTaskSuccess": "ends a pause of an execution whose task token it has read in a record",
    "logs:CreateLogStream": "writes false lines into the function's own log",
    "logs:PutLogEvents": "writes false lines into the function's own log",
    "ec2:CreateNetworkInterface": _VPC,
    "ec2:DeleteNetworkInterface": _VPC,
    "ec2:AssignPrivateIpAddresses": _VPC,
    "ec2:UnassignPrivateIpAddresses": _VPC,
    "xray:PutTraceSegments": f"writes false traces; {_NO_CODE}",
    "xray:PutTelemetryRecords": f"writes false traces; {_NO_CODE}",
    "logs:CreateLogDelivery": f"sends logs of other services elsewhere; {_NO_CODE}",
    "logs:UpdateLogDelivery": f"sends logs of other services elsewhere; {_NO_CODE}",
    "logs:DeleteLogDelivery": f"ends the delivery of other services' logs; {_NO_CODE}",
    "logs:PutResourcePolicy": f"lets other principals write into the account's log groups; {_NO_CODE}",
}
"""IAM action -> worst case, as a clause whose subject is the function."""
