"""ARC's notices of zonal shifts through the real handler: the shifts are read at once, and nothing is drained."""

from leeward.errors import AwsUnavailableError
from leeward.model.facts import FactKind, Sheet, subnets_content
from leeward.model.zonal_shift import ShiftKind, ShiftSource
from tests.events import event
from tests.fakes.builders import CLUSTER, a_subnet

SILENT = AwsUnavailableError("no answer")


def a_queue(connect):
    queue = connect()
    sheet = Sheet(synced=queue.system.clock.now(), content=subnets_content([a_subnet(zone="us-east-1a")]))
    queue.system.catalog.keep(CLUSTER, FactKind.SUBNETS, sheet)
    return queue


def kept(queue):
    return queue.system.catalog.zonal_shifts(CLUSTER)


def test_a_notice_closes_the_zone_at_once_and_drains_nothing(connect):
    queue = a_queue(connect)
    queue.system.recovery.arc.start(CLUSTER, "use1-az1", ShiftKind.AUTOSHIFT, queue.system.clock.now())
    assert queue.deliver(event("zonal_shift")) == []
    assert kept(queue).zones == {"us-east-1a"}
    assert kept(queue).shifts[0].source is ShiftSource.EVENT
    assert queue.system.claims.records == {}
    assert not any(node.unschedulable for node in queue.system.kubernetes.nodes())


def test_arc_says_what_holds_and_not_the_notice(connect):
    queue = a_queue(connect)
    queue.deliver(event("zonal_shift"))
    assert kept(queue).zones == frozenset(), "an autoshift of the zone, for which the cluster is not registered"


def test_the_end_of_a_shift_opens_the_zone_at_once(connect):
    queue = a_queue(connect)
    arc = queue.system.recovery.arc
    arc.start(CLUSTER, "use1-az1", ShiftKind.AUTOSHIFT, queue.system.clock.now())
    queue.deliver(event("zonal_shift"))
    arc.end(CLUSTER, "use1-az1")
    queue.deliver(event("zonal_shift", detail_x_type="Autoshift Completed"))
    assert kept(queue).zones == frozenset()


def test_while_arc_does_not_answer_the_notice_counts(connect):
    queue = a_queue(connect)
    queue.system.recovery.fail("shifts", SILENT)
    assert queue.deliver(event("zonal_shift")) == [], "the reconciler asks again within a minute"
    assert kept(queue).zones == {"us-east-1a"}
    queue.deliver(event("zonal_shift", detail_x_type="Autoshift Completed", id="another"))
    assert kept(queue).zones == {"us-east-1a"}, "only ARC says that a shift is over"


def test_a_notice_about_another_cluster_reads_nothing(connect):
    queue = a_queue(connect)
    queue.deliver(event("zonal_shift", resources=["arn:aws:eks:us-east-1:111122223333:cluster/another"]))
    assert queue.system.recovery.asked["shifts"] == 0


def test_a_table_that_does_not_answer_delivers_the_notice_again(connect):
    queue = a_queue(connect)
    queue.system.catalog.fail("zonal_shifts", SILENT)
    assert len(queue.deliver(event("zonal_shift"))) == 1
