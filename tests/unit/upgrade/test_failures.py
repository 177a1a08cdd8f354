"""Every known cause of NodeCreationFailure and PodEvictionFailure, each with its way out (U8, U14)."""

from datetime import timedelta

import pytest

from leeward.upgrade.failures import (
    CreationCause,
    EvictionCause,
    code_in,
    eviction_failure,
    labels_missing,
    launch_failure,
    never_joined,
    not_ready,
)

WAITED = timedelta(minutes=15)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("InsufficientInstanceCapacity", CreationCause.NO_CAPACITY),
        ("VcpuLimitExceeded", CreationCause.INSTANCE_QUOTA),
        ("MaxSpotInstanceCountExceeded", CreationCause.INSTANCE_QUOTA),
        ("InsufficientFreeAddressesInSubnet", CreationCause.NO_ADDRESSES),
        ("InvalidAMIID.NotFound", CreationCause.LAUNCH_REFUSED),
    ],
)
def test_a_launch_that_ec2_refuses_is_reported_with_zone_code_and_fix(code, cause):
    found = launch_failure("us-east-1a", code, "their own words")
    assert found.cause is cause
    assert found.message == f"us-east-1a: no new node could be launched: {code}: their own words"
    assert found.fix


def test_an_instance_that_never_joins_points_at_its_user_data():
    found = never_joined("i-1", "us-east-1a", WAITED, "running")
    assert found.cause is CreationCause.NOT_JOINED
    assert "running for 15m" in found.message
    assert "user data" in found.fix


def test_an_instance_that_ended_is_no_case_for_its_user_data():
    assert never_joined("i-1", "us-east-1a", WAITED, "terminated").cause is CreationCause.INSTANCE_ENDED


def test_missing_labels_are_named():
    found = labels_missing("n1", ["eks.amazonaws.com/nodegroup=web"])
    assert found.cause is CreationCause.LABELS_MISSING
    assert "eks.amazonaws.com/nodegroup=web" in found.message


def test_a_node_that_is_not_ready_names_the_conditions_that_are_wrong():
    conditions = [
        {"type": "MemoryPressure", "status": "False"},
        {"type": "DiskPressure", "status": "True", "reason": "KubeletHasDiskPressure"},
        {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "cni plugin not initialized"},
    ]
    found = not_ready("n1", conditions, WAITED)
    assert found.cause is CreationCause.NOT_READY
    assert "DiskPressure=True (KubeletHasDiskPressure); Ready=False (KubeletNotReady: cni plugin" in found.message
    assert "MemoryPressure" not in found.message
    assert "DiskPressure" in found.fix


def test_a_node_without_conditions_is_reported_as_such():
    assert "it reports no condition" in not_ready("n1", [], WAITED).message


@pytest.mark.parametrize("cause", EvictionCause)
def test_every_cause_of_a_failed_eviction_names_node_pod_and_a_way_out(cause):
    found = eviction_failure(cause, node="n1", pod="shop/web-1", waited=WAITED, objects=("shop/a", "shop/b"))
    assert found.message.startswith("n1: shop/web-1 has not left in 15m: ")
    assert found.fix


def test_several_budgets_are_all_named():
    found = eviction_failure(
        EvictionCause.SEVERAL_BUDGETS,
        node="n1",
        pod="shop/web-1",
        waited=WAITED,
        objects=("shop/a", "shop/b"),
        details="500",
    )
    assert found.message.endswith("several PodDisruptionBudgets select it: shop/a, shop/b: 500")


def test_the_code_that_a_refusal_quotes_names_its_cause():
    said = "VcpuLimitExceeded: You have requested more vCPU capacity than your current limit"
    assert launch_failure("us-east-1a", code_in(said), said).cause is CreationCause.INSTANCE_QUOTA
    assert code_in("ValidationError: the group has none") == ""
