"""Findings of pre-flight, each with its fix. The codes are a public, closed set (docs/reference/findings.md)."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding. A blocker stops the run, unless it is overridden by its code."""

    BLOCKER = "blocker"
    WARNING = "warning"


class Code(StrEnum):
    """Code of a finding, one for each kind."""

    # pods and their budgets
    PDB_NEVER_ALLOWS = "PdbNeverAllows"
    PDB_ALLOWS_NONE_NOW = "PdbAllowsNoneNow"
    SEVERAL_PDBS = "SeveralPdbs"
    PDB_ON_FAILING_PODS = "PdbOnFailingPods"
    # workloads
    TOLERATES_EVERYTHING = "ToleratesEverything"
    POLICY_REFUSES_PODS = "PolicyRefusesPods"
    REPLICAS_ON_ONE_NODE = "ReplicasOnOneNode"
    OPTED_OUT = "OptedOut"
    PODS_FIT_NOWHERE = "PodsFitNowhere"
    PODS_BEYOND_LIMITS = "PodsBeyondLimits"
    MORE_NODES_NEEDED = "MoreNodesNeeded"
    TEMPLATE_INCOMPLETE = "TemplateIncomplete"
    # capacity for the surge
    ZONE_WITHOUT_ADDRESSES = "ZoneWithoutAddresses"
    ZONE_SHORT_OF_ADDRESSES = "ZoneShortOfAddresses"
    MAX_SIZE_RAISED = "MaxSizeRaised"
    INSTANCE_QUOTA = "InstanceQuota"
    # the group
    NOT_SELECTED = "NotSelected"
    NOTHING_TO_UPGRADE = "NothingToUpgrade"
    NO_LAUNCH_TEMPLATE = "NoLaunchTemplate"
    MANAGED_IMAGE = "ManagedImage"
    SUSPENDED_PROCESSES = "SuspendedProcesses"
    HOOK_MISSING = "HookMissing"
    INSTANCE_REFRESH_RUNNING = "InstanceRefreshRunning"
    MAX_INSTANCE_LIFETIME = "MaxInstanceLifetime"
    SCHEDULED_ACTIONS = "ScheduledActions"
    NODES_NOT_JOINED = "NodesNotJoined"
    LABELS_MISSING = "LabelsMissing"
    INSTANCES_LEFT_OUT = "InstancesLeftOut"
    CAPACITY_UNITS = "CapacityUnits"
    # a managed node group, which EKS rolls
    NODEGROUP_NOT_ACTIVE = "NodegroupNotActive"
    NODEGROUP_DEGRADED = "NodegroupDegraded"
    MANAGED_PARALLELISM = "ManagedParallelism"
    MANAGED_CANARY = "ManagedCanary"
    # versions
    KUBELET_NEWER = "KubeletNewer"
    KUBELET_TOO_OLD = "KubeletTooOld"
    CONTROL_PLANE_UNKNOWN = "ControlPlaneUnknown"
    ARCHITECTURE_MISMATCH = "ArchitectureMismatch"
    # the image
    FOREIGN_IMAGE = "ForeignImage"
    IMAGE_NOT_FOUND = "ImageNotFound"
    IMAGE_OVERRIDDEN = "ImageOverridden"
    # when
    CLUSTER_PAUSED = "ClusterPaused"
    FROZEN = "Frozen"
    WINDOW_CLOSED = "WindowClosed"
    BUDGET_ALLOWS_NONE = "BudgetAllowsNone"
    ALARM_MISSING = "AlarmMissing"
    ALARM_RINGING = "AlarmRinging"
    # pre-flight itself
    NOT_JUDGED = "NotJudged"


NEVER_OVERRIDDEN = frozenset({Code.CAPACITY_UNITS})  # launches and terminations of such a group would not balance


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightFinding:
    """One finding. `object`: its subject, as its own tool names it: `pdb shop/web`, `group web`, `zone us-east-1a`."""

    code: Code
    severity: Severity
    object: str
    message: str
    fix: str


def blocker(code: Code, about: str, message: str, fix: str) -> PreflightFinding:
    """Return a finding with which the run would fail or do harm."""
    return PreflightFinding(code=code, severity=Severity.BLOCKER, object=about, message=message, fix=fix)


def warning(code: Code, about: str, message: str, fix: str) -> PreflightFinding:
    """Return a finding that is worth knowing before the start."""
    return PreflightFinding(code=code, severity=Severity.WARNING, object=about, message=message, fix=fix)


def blocking(findings: tuple[PreflightFinding, ...], overridden: frozenset[Code]) -> tuple[PreflightFinding, ...]:
    """Return the blockers that are not overridden."""
    allowed = overridden - NEVER_OVERRIDDEN
    return tuple(one for one in findings if one.severity is Severity.BLOCKER and one.code not in allowed)
