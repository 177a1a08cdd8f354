"""Fields in which a node can drift, and a difference in one of them.

Source: Karpenter v0.30's Drift design: static fields are compared one to one, dynamic ones for compatibility;
behavioural settings (budgets, savings, times to live) are no drift (docs/features.md, K14)."""

from dataclasses import dataclass
from enum import StrEnum


class Field(StrEnum):
    """Closed set of fields, in the order in which reasons are reported."""

    AMI = "ami"
    SUBNETS = "subnets"
    SECURITY_GROUPS = "securityGroups"
    REQUIREMENTS = "requirements"
    LABELS = "labels"
    ANNOTATIONS = "annotations"
    TAINTS = "taints"
    STARTUP_TAINTS = "startupTaints"
    USER_DATA = "userData"
    KUBELET = "kubelet"
    INSTANCE_PROFILE = "instanceProfile"
    TAGS = "tags"
    METADATA_OPTIONS = "metadataOptions"
    BLOCK_DEVICES = "blockDevices"
    DETAILED_MONITORING = "detailedMonitoring"


class DriftKind(StrEnum):
    """Kind of a field. Dynamic fields also drift when the cloud side changes."""

    STATIC = "static"
    DYNAMIC = "dynamic"


DYNAMIC = frozenset({Field.AMI, Field.SUBNETS, Field.SECURITY_GROUPS, Field.REQUIREMENTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReason:
    """One difference."""

    field: Field
    have: str
    want: str
    fixable: bool = True  # a node that the group would launch now does not have it
    proof: str = ""  # evidence that such a node has it too, empty where there is none

    @property
    def kind(self) -> DriftKind:
        """Kind of the field."""
        return DriftKind.DYNAMIC if self.field in DYNAMIC else DriftKind.STATIC
