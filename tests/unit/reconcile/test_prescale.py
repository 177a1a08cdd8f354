"""The minute reconciler and `zones.onShift: prescale`: capacity for the pods of a shifted zone, and its end."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import AwsUnavailableError
from leeward.model.termination import CauseKind
from leeward.model.well_known import KEPT_FOR, SCALE_DOWN_DISABLED
from leeward.model.zonal_shift import ShiftKind
from leeward.policy.document import OnShift
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import CLUSTER, GROUP, a_policy, an_instance, pausing
from tests.state_machines.walker import Walker
from tests.unit.evacuation.test_plan import a_volume
from tests.unit.reconcile.zones import IN_A, A, B, C, a_group_in, a_pod, a_system, evacuate, node_in
from tests.unit.upgrade.test_capacity_ledger import RECORD as OPEN_UPGRADE

PRESCALE = replace(a_policy(), on_shift=OnShift.PRESCALE)
SILENT = AwsUnavailableError("no answer")


def a_shifted_system(*pods, kind=ShiftKind.AUTOSHIFT, policy=PRESCALE, **more):
    pods = pods or tuple(a_pod(f"web-{name}", name) for name in IN_A)
    system = a_system(*pods, policy=policy, **more)
    joins_at_once(system)
    system.recovery.arc.start(CLUSTER, "use1-az1", kind, system.clock.now())
    return system


def joins_at_once(system):
    def joined(group, subnet, instance):
        zone = f"us-east-1{subnet[-1]}"
        system.instances.known[instance] = replace(
            an_instance(instance, group=group), zone=zone, subnet=subnet, launched=system.clock.now()
        )
        system.kubernetes.put_node(node_in(instance, zone))

    system.groups.on_launch = joined


def minutes_later(system, minutes=1):
    system.clock.advance(minutes=minutes)
    return reconcile_once(system.ports)


def end_shift(system):
    system.recovery.arc.end(CLUSTER, "use1-az1")


def sizes(system):
    group = system.groups.by_name[GROUP]
    return group.minimum, group.desired, group.maximum


def prescales(system):
    return system.catalog.zone_record(CLUSTER).prescales


def finish_terminations(system):
    for name in sorted(system.executions.open):
        instance, _, attempt = name.rpartition("-")
        Walker(system).run(instance, int(attempt))
        system.executions.open.discard(name)


def launched_in(system):
    return Counter(subnet for _, subnet, _ in system.groups.launches)


def test_one_node_for_each_node_with_movable_pods_is_launched_in_the_other_zones_in_the_pass_that_learns_of_the_shift():
    system = a_shifted_system()
    result = reconcile_once(system.ports)
    assert len(result.prescaled) == len(IN_A)
    assert launched_in(system).keys() <= {"subnet-b", "subnet-c"}
    (prescale,) = prescales(system)
    assert (prescale.zone, prescale.wanted, prescale.refused) == (A, {GROUP: 3}, {})
    assert sorted(prescale.launched) == sorted(result.prescaled)


def test_further_passes_launch_nothing_more():
    system = a_shifted_system()
    reconcile_once(system.ports)
    desired = system.groups.by_name[GROUP].desired
    assert [minutes_later(system).prescaled for _ in range(3)] == [[], [], []]
    assert system.groups.by_name[GROUP].desired == desired


def test_after_the_shift_the_new_nodes_are_drained_and_terminated_with_decrement_and_the_sizes_are_as_before():
    system = a_shifted_system()
    before = sizes(system)
    new = reconcile_once(system.ports).prescaled
    system.kubernetes.put_pod(a_pod("moved", new[0]))
    end_shift(system)
    minutes_later(system)
    assert {cause.kind for name in new for cause in system.claims.records[name].causes} == {CauseKind.SURPLUS}
    finish_terminations(system)
    minutes_later(system)
    assert system.groups.terminated == [(name, True) for name in sorted(new)]
    assert system.kubernetes.done == ["evict shop/moved"]
    assert sizes(system) == before
    assert prescales(system) == ()


@pytest.mark.parametrize("kind", [ShiftKind.PRACTICE_RUN])
def test_a_practice_run_launches_nothing(kind):
    system = a_shifted_system(kind=kind)
    assert reconcile_once(system.ports).prescaled == []
    assert prescales(system) == ()


@pytest.mark.parametrize("kind", [ShiftKind.MANUAL, ShiftKind.AUTOSHIFT, ShiftKind.FIS])
def test_every_other_shift_does(kind):
    assert len(reconcile_once(a_shifted_system(kind=kind).ports).prescaled) == 3


def test_a_policy_that_holds_launches_nothing():
    assert reconcile_once(a_shifted_system(policy=a_policy()).ports).prescaled == []


def test_a_paused_cluster_launches_nothing_until_it_is_resumed():
    system = a_shifted_system()
    resumed = system.clusters.policies_of[CLUSTER]
    system.clusters.policies_of[CLUSTER] = pausing(resumed)
    assert reconcile_once(system.ports).prescaled == []
    system.clusters.policies_of[CLUSTER] = resumed
    assert len(minutes_later(system).prescaled) == 3


def test_a_pod_that_is_bound_to_the_zone_calls_for_no_capacity():
    pods = (a_pod("db-0", "i-0a1", claims=("data",)), a_pod("web-2", "i-0a2"))
    system = a_shifted_system(*pods)
    system.kubernetes.volume_list = [a_volume()]
    reconcile_once(system.ports)
    assert prescales(system)[0].wanted == {GROUP: 1}


def test_max_size_is_respected_and_the_nodes_that_do_not_fit_are_named():
    system = a_shifted_system(groups=[a_group_in((A, B, C), maximum=7)])
    assert len(reconcile_once(system.ports).prescaled) == 1
    (prescale,) = prescales(system)
    assert prescale.refused == {GROUP: "2 of 3 nodes without room: MaxSize is 7, 6 are desired"}
    assert sizes(system)[2] == 7


def test_a_group_that_launch_instances_does_not_serve_is_named():
    system = a_shifted_system()
    system.groups.refuse_launch = "UnsupportedOperation: mixed purchase options"
    assert reconcile_once(system.ports).prescaled == []
    assert "UnsupportedOperation" in prescales(system)[0].refused[GROUP]


def test_a_subnet_without_capacity_passes_its_nodes_to_the_next_open_zone():
    system = a_shifted_system()
    system.groups.short_of_capacity = {"subnet-b"}
    assert len(reconcile_once(system.ports).prescaled) == 3
    assert launched_in(system).keys() == {"subnet-c"}
    assert sum(node.zone == C for node in prescales(system)[0].launched.values()) == 3


def test_a_pass_that_dies_between_a_launch_and_its_record_launches_once():
    system = a_shifted_system()
    real, writes = system.catalog.write_zone_record, []

    def dies_after_the_first_launch(record, now):
        if system.groups.launches and not writes:
            writes.append(record)
            raise SILENT
        return real(record, now)

    system.catalog.write_zone_record = dies_after_the_first_launch
    desired = system.groups.by_name[GROUP].desired
    assert reconcile_once(system.ports).errors
    minutes_later(system)
    assert len(prescales(system)[0].launched) == 3
    assert system.groups.by_name[GROUP].desired == desired + 3


def test_a_launch_whose_answer_was_lost_is_known_and_offset_although_the_shift_is_over():
    system = a_shifted_system()
    before = sizes(system)
    real = system.catalog.write_zone_record
    system.catalog.write_zone_record = lambda record, now: real(record, now) if not system.groups.launches else None
    reconcile_once(system.ports)
    system.catalog.write_zone_record = real
    end_shift(system)
    for _ in range(3):
        minutes_later(system)
        finish_terminations(system)
    minutes_later(system)
    assert sizes(system) == before
    assert prescales(system) == ()


def test_while_the_shifts_cannot_be_read_nothing_is_ended():
    system = a_shifted_system()
    new = reconcile_once(system.ports).prescaled
    end_shift(system)
    system.recovery.fail("shifts", SILENT)
    minutes_later(system)
    system.recovery.heal()
    system.catalog.fail("zonal_shifts", SILENT)
    minutes_later(system)
    assert not any(name in system.claims.records for name in new)
    assert prescales(system)[0].ended is None


def test_the_new_nodes_are_kept_from_scale_down_while_the_shift_lasts_and_are_no_candidates():
    system = a_shifted_system()
    new = reconcile_once(system.ports).prescaled
    minutes_later(system)
    node = system.kubernetes.by_name[f"node-{new[0]}"]
    assert node.annotations[KEPT_FOR] == f"prescale:{A}"
    assert (
        system.catalog.zonal_shifts(CLUSTER).prescaled[new[0]].startswith("it was launched ahead for pods of us-east")
    )
    minutes_later(system)
    assert SCALE_DOWN_DISABLED in system.kubernetes.by_name[f"node-{new[0]}"].annotations
    end_shift(system)
    minutes_later(system)
    assert SCALE_DOWN_DISABLED not in system.kubernetes.by_name[f"node-{new[0]}"].annotations
    assert system.catalog.zonal_shifts(CLUSTER).prescaled == {}


def test_a_new_node_whose_own_end_has_shrunk_the_group_is_not_offset_again():
    system = a_shifted_system()
    before = sizes(system)
    new = reconcile_once(system.ports).prescaled
    system.clock.advance(minutes=10)
    system.groups.terminate(instance=new[0], decrement=True)
    system.instances.known[new[0]] = replace(system.instances.known[new[0]], state="terminated")
    end_shift(system)
    for _ in range(3):
        minutes_later(system)
        finish_terminations(system)
    assert sizes(system) == before
    assert len(system.groups.terminated) == 3


def test_a_second_shift_of_the_same_zone_launches_again():
    system = a_shifted_system()
    before = sizes(system)
    reconcile_once(system.ports)
    end_shift(system)
    for _ in range(3):
        minutes_later(system)
        finish_terminations(system)
    assert sizes(system) == before
    system.recovery.arc.start(CLUSTER, "use1-az1", ShiftKind.MANUAL, system.clock.now() + timedelta(seconds=1))
    assert len(minutes_later(system).prescaled) == 3


def test_a_group_with_an_open_upgrade_is_left_to_it_and_named():
    system = a_shifted_system()
    system.upgrades.write(replace(OPEN_UPGRADE, group=GROUP, version=0))
    assert reconcile_once(system.ports).prescaled == []
    assert "an upgrade of the group is under way" in prescales(system)[0].refused[GROUP]


def test_an_evacuated_zone_is_not_a_shift_that_calls_for_capacity():
    system = a_system(a_pod("web-1"), policy=PRESCALE)
    evacuate(system)
    assert reconcile_once(system.ports).prescaled == []
