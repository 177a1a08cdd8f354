"""Shapes of the snapshot data that placement reads: subnets, instance types, the aws-node DaemonSet, volumes."""

from leeward.adapters.folder.shapes import boolean, integer, list_of, mapping_of, name, record, text, word

TAGS = list_of(record({"Key": name}, {"Value": text}))
SUBNET = record(
    {"SubnetId": name, "AvailabilityZone": name, "AvailableIpAddressCount": integer},
    {"CidrBlock": text, "VpcId": text, "Tags": TAGS},
)
_CARD = record({"NetworkCardIndex": integer, "MaximumNetworkInterfaces": integer})
INSTANCE_TYPE = record(
    {"InstanceType": name},
    {
        "VCpuInfo": record({}, {"DefaultVCpus": integer}),
        "MemoryInfo": record({}, {"SizeInMiB": integer}),
        "NetworkInfo": record(
            {},
            {
                "MaximumNetworkInterfaces": integer,
                "Ipv4AddressesPerInterface": integer,
                "DefaultNetworkCardIndex": integer,
                "NetworkCards": list_of(_CARD),
            },
        ),
    },
)
_CONTAINER = record({}, {"name": text, "env": list_of(record({"name": name}, {"value": text}))})
DAEMON_SET_SPEC = record({}, {"template": record({}, {"spec": record({}, {"containers": list_of(_CONTAINER)})})})
_EXPRESSION = record(
    {"key": name, "operator": word("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")}, {"values": list_of(text)}
)
_REQUIRED = record({}, {"nodeSelectorTerms": list_of(record({}, {"matchExpressions": list_of(_EXPRESSION)}))})
VOLUME_SPEC = record({}, {"nodeAffinity": record({}, {"required": _REQUIRED})})
CLAIM_SPEC = record({}, {"volumeName": text})
POD_PLACE = {"hostNetwork": boolean, "nodeSelector": mapping_of(text)}
