"""Shapes of the EC2 and Auto Scaling fields that are read, as the `aws` command prints them."""

from leeward.adapters.folder.shapes import boolean, instant, integer, list_of, name, record, seconds, text, word
from leeward.adapters.folder.template_shapes import GROUP_LAUNCH, every
from leeward.adapters.folder.upgrade_shapes import GROUP_RECORD

_TAGS = list_of(record({"Key": name}, {"Value": text}))
INSTANCE = record(
    {"InstanceId": name},
    {
        "State": record({"Name": name}),
        "InstanceType": text,
        "Placement": record({}, {"AvailabilityZone": text}),
        "SubnetId": text,
        "InstanceLifecycle": text,
        "Tags": _TAGS,
        "LaunchTime": instant,
    },
)
_CHECK = record({}, {"Status": text, "Details": list_of(record({}, {"ImpairedSince": instant}))})
INSTANCE_STATUS = record(
    {"InstanceId": name}, {"SystemStatus": _CHECK, "InstanceStatus": _CHECK, "AttachedEbsStatus": _CHECK}
)
_SPREAD = record({}, {"OnDemandPercentageAboveBaseCapacity": integer, "OnDemandBaseCapacity": integer})
_GROUP = record(
    {"AutoScalingGroupName": name},
    {
        "Tags": _TAGS,
        "MinSize": integer,
        "MaxSize": integer,
        "DesiredCapacity": integer,
        "AvailabilityZones": list_of(text),
        "VPCZoneIdentifier": text,
        "Instances": list_of(record({"InstanceId": name}, {"AvailabilityZone": text, "LifecycleState": text})),
        "CapacityRebalance": boolean,
        "MixedInstancesPolicy": record({}, {"InstancesDistribution": _SPREAD}),
    },
)
HOOK = record(
    {"LifecycleHookName": name, "AutoScalingGroupName": name},
    {
        "LifecycleTransition": text,
        "HeartbeatTimeout": seconds,
        "DefaultResult": word("CONTINUE", "ABANDON"),
        "NotificationTargetARN": text,
        "NotificationMetadata": text,
    },
)
GROUP = every(_GROUP, GROUP_LAUNCH, GROUP_RECORD)
