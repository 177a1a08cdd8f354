"""Zonal shifts of the local stack's cluster: what ARC answers, its events, and the cordons of EKS."""

from local.stack import LocalStack


def shift(stack: LocalStack, zone: str, *, shift_type: str = "ZONAL_SHIFT", silent: bool = False) -> None:
    """Begin a shift away from the zone, with ARC's event unless it is `silent`; it cordons the zone's nodes."""
    body = {"awayFrom": _id(stack, zone), "shiftType": shift_type, "silent": silent}
    stack.control("PUT", f"zonal-shifts/{stack.cluster}", body)


def end_shift(stack: LocalStack, zone: str, *, silent: bool = False) -> None:
    """End the shift away from the zone, and with it the cordons."""
    stack.control("DELETE", f"zonal-shifts/{stack.cluster}", {"awayFrom": _id(stack, zone), "silent": silent})


def _id(stack: LocalStack, zone: str) -> str:
    zones = stack.client("ec2").describe_availability_zones(ZoneNames=[zone])["AvailabilityZones"]
    return str(zones[0]["ZoneId"])
