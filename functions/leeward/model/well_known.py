"""Names that Leeward reads or writes on nodes, pods, groups and instances, in one place, and the names by which two
deployments on one cluster separate their objects: the owner of taints and records, the mark of hooks.

A deployment is usually the only one of its account and Region and has no name. A named one (setting `deployment`) runs
beside it."""

OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"  # effect NoExecute: its volumes may be taken by force
PREFIX = "leeward.dev/"  # of everything that Leeward puts on nodes
DO_NOT_DISRUPT = "leeward.dev/do-not-disrupt"  # added and removed by people alone
DISRUPTION_WINDOW = "leeward.dev/disruption-window"  # of pods: CRON/DURATION [TIME ZONE]
UNINITIALIZED_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"  # until the cloud controller knows the Node
DISRUPTED_TAINT = "leeward.dev/disrupted"  # value: the deployment that terminates the node; effect NoSchedule
CORDONED_BY_DRAIN = "leeward.dev/cordoned-by-drain"  # a termination cordoned the node: it is uncordoned with our taint
CORDONED_FOR = "leeward.dev/cordoned-for"  # the upgrade that cordoned the node: only such a cordon is removed again
EXCLUDED_FOR = "leeward.dev/excluded-for"  # the same for the label that takes it out of load balancers
EXCLUDED_BY_DRAIN = "leeward.dev/excluded-by-drain"  # a termination added the label: it is removed with our taint
FINALIZER = "leeward.dev/termination"  # a deleted Node is drained and its instance ended first
KEPT_FOR = "leeward.dev/kept-for"  # owner of SCALE_DOWN_DISABLED, for only such a one is removed again: an upgrade by
OF_DISRUPTION = "disruption:"  # its group, or a disruption run by this and its number: no group's name has a colon
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"  # names, by commas
EXCLUDE_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"
FIRST_SEEN = "leeward.dev/first-seen"  # CONDITION=FIRST/LAST, TAINT=FIRST/LAST: when the reconciler saw it
EMPTY_SINCE = "leeward.dev/empty-since"  # RFC 3339: when the node was first observed without workload pods
EXPIRED = "leeward.dev/expired"  # "true": older than its policy allows
DRIFTED_SINCE = "leeward.dev/drifted-since"  # RFC 3339
DRIFT_REASONS = "leeward.dev/drift-reasons"  # fields, comma-separated
DRIFT_NOT_FIXABLE = "leeward.dev/drift-not-fixable"  # those of them that a new node would show too
IMAGE_MOVED = "leeward.dev/image-moved"  # IMAGE SINCE: the newer image of `update.auto`, RFC 3339
KEPT_APART_BY = "leeward.dev/kept-apart-by"  # namespaces of pods whose anti-affinity by zone means pods of the node
TEMPLATE_HASH = "leeward.dev/template-hash"  # the launch settings of the node, field by field
TEMPLATE_HASH_VERSION = "leeward.dev/template-hash-version"  # version of its computation
FINDINGS = frozenset(  # of the disruption planner, on nodes of selected groups alone
    {
        EMPTY_SINCE,
        EXPIRED,
        DRIFTED_SINCE,
        DRIFT_REASONS,
        DRIFT_NOT_FIXABLE,
        IMAGE_MOVED,
        KEPT_APART_BY,
        TEMPLATE_HASH,
        TEMPLATE_HASH_VERSION,
    }
)
TERMINATES_AT = "leeward.dev/terminates-at"  # RFC 3339, on pods that have to leave: when their node ends
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
MIRROR_POD = "kubernetes.io/config.mirror"

ZONE_LABEL = "topology.kubernetes.io/zone"
ZONE_ID_LABEL = "topology.k8s.aws/zone-id"  # put on nodes by the AWS cloud provider since Kubernetes 1.30
ZONE_KEYS = (ZONE_LABEL, "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone")  # the zone's name
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"

CLUSTER_TAG_PREFIX = "kubernetes.io/cluster/"  # + cluster name; value owned or shared
EKS_CLUSTER_TAGS = ("eks:cluster-name", "aws:eks:cluster-name")
NODEGROUP_TAG = "eks:nodegroup-name"
GROUP_TAG = "aws:autoscaling:groupName"

TERMINATE_HOOK = "leeward-terminate"  # the hook that fn sync keeps on every selected group
HOOK_MARK = "leeward.dev/v1"  # its NotificationMetadata: separates our hook from another team's of the same name

SUBNET_LABEL = "leeward.dev/subnet-id"  # put on nodes by fn sync
CAST_SUBNET_LABEL = "topology.cast.ai/subnet-id"  # the same, as Cast AI's autoscaler spells it


TERMINATION = "node-termination"  # our state machines
UPGRADE = "node-group-upgrade"
MANAGED_UPGRADE = "managed-node-group-upgrade"
DISRUPTION = "disruption"
MACHINES = (TERMINATION, UPGRADE, MANAGED_UPGRADE, DISRUPTION)
STATE_CHANGES = "state-changes"  # our queue of EC2 state changes and lifecycle actions, after the prefix
NAME_PREFIX = "leeward"  # of every physical name of the usual deployment, and the source of its events


def prefix(deployment: str = "") -> str:
    """Return the prefix of the physical names of a deployment."""
    return f"{deployment}-{NAME_PREFIX}" if deployment else NAME_PREFIX


def deployment_id(account: str, region: str, deployment: str = "") -> str:
    """Return the owner of taints and records."""
    return "-".join(part for part in (account, region, deployment) if part)


def hook_mark(deployment: str = "") -> str:
    """Return the NotificationMetadata of the hooks that its fn sync puts on groups, and removes again."""
    return f"{HOOK_MARK}/{deployment}" if deployment else HOOK_MARK


def is_hook_mark(metadata: str | None) -> bool:
    """Return whether any deployment of Leeward put the hook there."""
    return metadata == HOOK_MARK or (metadata or "").startswith(f"{HOOK_MARK}/")
