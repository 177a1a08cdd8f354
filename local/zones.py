"""Zonal shifts of the local stack's cluster: what ARC answers, its events, and the cordons of EKS."""

from local.stack import LocalStack

ZONE_LABEL = "topology.kubernetes.io/zone"


def shift(stack: LocalStack, zone: str, *, shift_type: str = "ZONAL_SHIFT", silent: bool = False) -> None:
    """Begin a shift away from the zone, with ARC's event unless it is `silent`, and cordon the zone's nodes."""
    zones = stack.client("ec2").describe_availability_zones(ZoneNames=[zone])["AvailabilityZones"]
    body = {"awayFrom": zones[0]["ZoneId"], "shiftType": shift_type, "silent": silent}
    stack.control("PUT", f"zonal-shifts/{stack.cluster}", body)
    _cordon(stack, zone, cordoned=True)


def end_shift(stack: LocalStack, zone: str, *, silent: bool = False) -> None:
    """End the shift, and remove the cordons."""
    stack.control("DELETE", f"zonal-shifts/{stack.cluster}", {"silent": silent})
    _cordon(stack, zone, cordoned=None)


def _cordon(stack: LocalStack, zone: str, *, cordoned: bool | None) -> None:
    for node in stack.kubernetes("GET", "/api/v1/nodes")["items"]:
        if node["metadata"].get("labels", {}).get(ZONE_LABEL) == zone:
            path, change = f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"unschedulable": cordoned}}
            stack.kubernetes("PATCH", path, change, "application/merge-patch+json")
