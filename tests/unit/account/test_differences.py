"""What AWS did differently from our model, out of recordings."""

import json
from dataclasses import replace
from pathlib import Path

from account_test import differences
from tests.unit.account.builders import BEGAN, NEW, OLD, STAYS, a_sample, a_termination, an_end, changed, kept

GOLDEN = Path("tests/events")


def golden(name):
    return json.loads((GOLDEN / name).read_text())


def warned(after):
    event = golden("spot_interruption.json")
    return {**event, "time": f"2026-01-01T00:0{after // 60}:{after % 60:02d}Z", "detail": {"instance-id": OLD}}


def test_an_event_of_the_golden_shape_is_no_difference():
    assert list(differences.shapes([golden("spot_interruption.json"), golden("state_change.json")], GOLDEN)) == []


def test_a_field_more_a_field_less_and_another_type_are_named_once_for_each_kind():
    event = golden("spot_interruption.json")
    event["detail"] = {"instance-id": 42, "new-field": "x"}
    (found,) = differences.shapes([event, event], GOLDEN)
    assert found.about == "shape of EC2 Spot Instance Interruption Warning"
    assert "without detail.instance-action:str, detail.instance-id:str" in found.measured
    assert "also with detail.instance-id:int, detail.new-field:str" in found.measured


def test_an_event_that_no_test_is_made_of_is_left_out():
    assert list(differences.shapes([{"detail-type": "EC2 Spot Instance Request Fulfillment"}], GOLDEN)) == []


def test_the_seconds_from_warning_to_end_are_measured_by_the_events():
    alive = a_termination(times={})
    (late,) = differences.warning(changed(terminations=[alive], events=[warned(0), an_end(second=45)]))
    assert (late.measured, late.same) == ("45 s after the warning", False)
    (early,) = differences.warning(changed(events=[warned(0), an_end(second=45)]))
    assert early.measured.endswith("Leeward had terminated it before")
    assert early.same
    assert list(differences.warning(kept())) == []


def test_launch_instances_and_the_desired_size():
    (raised,) = differences.launch(kept())
    assert (raised.measured, raised.same) == ("raised by 1 at the most", True)
    flat = [a_sample(0, OLD, STAYS), a_sample(60, STAYS, NEW)]
    (never,) = differences.launch(changed(play="self-managed upgrade", samples=flat))
    assert (never.measured, never.same) == ("never seen raised", False)
    assert list(differences.launch(changed(samples=flat))) == []
    assert list(differences.launch(changed(play="managed upgrade"))) == []


def test_a_launch_that_aws_refuses_is_named():
    refused = a_termination(launched=(), replacement="AccessDenied: ec2:CreateFleet")
    found = list(differences.launch(changed(terminations=[refused], samples=[a_sample(0, OLD)])))
    assert [one.measured for one in found] == ["AccessDenied: ec2:CreateFleet"]


def test_lifecycle_states_in_another_order_are_named():
    def states(*names):
        samples = [replace(a_sample(at), members={OLD: name}) for at, name in enumerate(names)]
        return list(differences.order(changed(samples=samples, began=BEGAN)))

    assert states("InService", "Terminating:Wait", "Terminating:Proceed") == []
    (found,) = states("InService", "Terminating:Proceed", "Terminating:Wait")
    assert found.measured == "InService → Terminating:Proceed → Terminating:Wait"
