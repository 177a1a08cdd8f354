"""Names that Leeward reads or writes on nodes, pods, groups and instances, in one place."""

DISRUPTED_TAINT = "leeward.dev/disrupted"  # effect NoSchedule: the node is on its way out
CORDONED_BEFORE = "leeward.dev/cordoned-before"  # by somebody else: it stays so when our mark comes off
MIRROR_POD = "kubernetes.io/config.mirror"

ZONE_LABEL = "topology.kubernetes.io/zone"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"

CLUSTER_TAG_PREFIX = "kubernetes.io/cluster/"  # + cluster name; value owned or shared
EKS_CLUSTER_TAGS = ("eks:cluster-name", "aws:eks:cluster-name")
NODEGROUP_TAG = "eks:nodegroup-name"
GROUP_TAG = "aws:autoscaling:groupName"

TERMINATE_HOOK = "leeward-terminate"  # the hook that fn sync keeps on every selected group
HOOK_MARK = "leeward.dev/v1"  # its NotificationMetadata: tells our hook from another team's of the same name

SUBNET_LABEL = "leeward.dev/subnet-id"  # put on nodes by fn sync
CAST_SUBNET_LABEL = "topology.cast.ai/subnet-id"  # the same, as Cast AI's autoscaler spells it
