"""Shapes of the snapshot data that node templates read: launch templates and configurations, overrides, node groups."""

from typing import Any

from leeward.adapters.folder.place_shapes import INSTANCE_TYPE as PLACE_TYPE
from leeward.adapters.folder.shapes import Shape, ShapeError, boolean, integer, list_of, mapping_of, name, record, text
from leeward.policy.fields import shown


def number(value: Any, path: str) -> None:
    """Accept a number, whole or not."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 2**53:
        raise ShapeError(path, shown(value), "a number")


def either(*shapes: Shape) -> Shape:
    """Return a shape that takes what any of the shapes takes; when none does, the last one's error is raised."""

    def check(value: Any, path: str) -> None:
        for shape in shapes[:-1]:
            try:
                return shape(value, path)
            except ShapeError:
                continue
        return shapes[-1](value, path)

    return check


def every(*shapes: Shape) -> Shape:
    """Return a shape that takes what all of the shapes take."""

    def check(value: Any, path: str) -> None:
        for shape in shapes:
            shape(value, path)

    return check


_RANGE = record({}, {"Min": number, "Max": number})
_TEXTS = list_of(text)
_RANGES = ("VCpuCount", "MemoryMiB", "MemoryGiBPerVCpu", "NetworkInterfaceCount", "BaselineEbsBandwidthMbps")
_CHIP_RANGES = ("AcceleratorCount", "AcceleratorTotalMemoryMiB", "TotalLocalStorageGB")
_LISTS = ("AllowedInstanceTypes", "ExcludedInstanceTypes", "InstanceGenerations", "CpuManufacturers")
_CHIP_LISTS = ("LocalStorageTypes", "AcceleratorTypes", "AcceleratorManufacturers", "AcceleratorNames")
_NEEDS = record(
    {},
    {
        **dict.fromkeys((*_RANGES, *_CHIP_RANGES), _RANGE),
        **dict.fromkeys((*_LISTS, *_CHIP_LISTS), _TEXTS),
        **dict.fromkeys(("BareMetal", "BurstablePerformance", "LocalStorage"), text),
    },
)
_VERSION = either(integer, text)
TEMPLATE = record({}, {"LaunchTemplateId": text, "LaunchTemplateName": text, "Version": _VERSION})
_OVERRIDE = record({}, {"InstanceType": text, "InstanceRequirements": _NEEDS, "LaunchTemplateSpecification": TEMPLATE})
GROUP_LAUNCH = record(
    {},
    {
        "LaunchTemplate": TEMPLATE,
        "LaunchConfigurationName": text,
        "MixedInstancesPolicy": record(
            {},
            {"LaunchTemplate": record({}, {"LaunchTemplateSpecification": TEMPLATE, "Overrides": list_of(_OVERRIDE)})},
        ),
    },
)
_LAUNCH = {
    "ImageId": text,
    "InstanceType": text,
    "UserData": text,
    "BlockDeviceMappings": list_of(record({}, {"DeviceName": text, "Ebs": record({}, {"VolumeSize": integer})})),
}
LAUNCH_TEMPLATE_VERSION = record(
    {},
    {
        "LaunchTemplateId": text,
        "LaunchTemplateName": text,
        "VersionNumber": integer,
        "DefaultVersion": boolean,
        "LaunchTemplateData": record(
            {},
            {
                **_LAUNCH,
                "InstanceRequirements": _NEEDS,
                "InstanceMarketOptions": record({}, {"MarketType": text}),
                "NetworkInterfaces": list_of(record({}, {"InterfaceType": text})),
            },
        ),
    },
)
LAUNCH_CONFIGURATION = record({"LaunchConfigurationName": name}, {**_LAUNCH, "SpotPrice": text})
NODEGROUP = record(
    {
        "nodegroup": record(
            {"nodegroupName": name},
            {
                "clusterName": name,
                "labels": mapping_of(text),
                "taints": list_of(record({}, {"key": text, "value": text, "effect": text})),
                "tags": mapping_of(text),
                "amiType": text,
                "capacityType": text,
                "diskSize": integer,
                "version": text,
                "instanceTypes": list_of(text),
                "launchTemplate": record({}, {"id": text, "version": _VERSION}),
                "resources": record({}, {"autoScalingGroups": list_of(record({}, {"name": text}))}),
            },
        )
    }
)
_CHIP = record(
    {},
    {
        "Manufacturer": text,
        "Name": text,
        "Count": integer,
        "MemoryInfo": record({}, {"SizeInMiB": integer}),
        "CoreInfo": record({}, {"Count": integer}),
    },
)
INSTANCE_TYPE = every(
    PLACE_TYPE,
    record(
        {},
        {
            "ProcessorInfo": record({}, {"SupportedArchitectures": _TEXTS, "Manufacturer": text}),
            "Hypervisor": text,
            "NetworkInfo": record({}, {"EfaInfo": record({}, {"MaximumEfaInterfaces": integer})}),
            "GpuInfo": record({}, {"Gpus": list_of(_CHIP)}),
            "InferenceAcceleratorInfo": record({}, {"Accelerators": list_of(_CHIP)}),
            "NeuronInfo": record({}, {"NeuronDevices": list_of(_CHIP)}),
            "FpgaInfo": record({}, {"Fpgas": list_of(_CHIP)}),
            "MediaAcceleratorInfo": record({}, {"Accelerators": list_of(_CHIP)}),
            "InstanceStorageInfo": record({}, {"TotalSizeInGB": integer, "Disks": list_of(record({}, {"Type": text}))}),
            "EbsInfo": record(
                {},
                {
                    "MaximumEbsAttachments": integer,
                    "EbsOptimizedInfo": record({}, {"BaselineBandwidthInMbps": integer}),
                },
            ),
        },
    ),
)
