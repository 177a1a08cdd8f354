"""LaunchInstances refused in each way that there is, as the adapter reports it."""

from leeward.model.launch_refusal import RefusalCause

REFUSALS = {
    RefusalCause.UNKNOWN: "UnknownOperation: this botocore has no LaunchInstances",
    RefusalCause.DENIED: "AccessDenied: not authorized to perform autoscaling:LaunchInstances",
    RefusalCause.REFUSED: "ValidationError: the mixed instances policy has mixed purchase options",
}
