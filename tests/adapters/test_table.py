"""What only the table can show: the wire's types, answers that got lost, and races that are lost again and again."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters.aws.claims import ATTEMPTS, DynamoClaims
from leeward.adapters.aws.record_items import new_record, record_of
from leeward.adapters.aws.table import DynamoTable, from_wire, to_wire
from leeward.adapters.aws.workflow_records import upgrade_of
from leeward.errors import AwsUnavailableError, NewerRecordError, NotDeployedError, ThrottledError
from leeward.model.termination import CauseKind, Status, taken_at
from tests.contract.test_claims import FULL, INSTANCE, OTHER, a_subject
from tests.fakes.builders import DEPLOYMENT
from tests.fakes.clock import FakeClock

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


def test_what_records_hold_survives_the_wire():
    item = new_record(a_subject(node="node-a"), FULL, NOW, deployment="a") | {"blockedBy": ["a", "b"], "evicted": -3}
    assert from_wire(to_wire(item)) == item


def test_what_a_newer_version_adds_to_a_record_is_passed_over():
    """While an update is under way functions of two versions read each other's records."""
    item = new_record(a_subject(node="node-a"), FULL, NOW, deployment="a")
    newer = {**item, "future": {"x": 1}, "subject": {**item["subject"], "future": True}}
    newer["causes"] = {id_: {**cause, "future": ["a"]} for id_, cause in item["causes"].items()}
    assert record_of(newer) == record_of(item)


def test_a_cause_of_a_newer_version_terminates_without_urgency_and_its_outcome_is_unknown():
    item = new_record(a_subject(node="node-a"), FULL, NOW, deployment="a")
    newer = {**item, "outcome": "hibernated", "causes": {FULL.id: {**item["causes"][FULL.id], "kind": "new_kind"}}}
    record = record_of(newer)
    assert ([cause.kind for cause in record.causes], record.outcome) == ([CauseKind.OTHER], None)
    assert taken_at(record, NOW) is None


@pytest.mark.parametrize("read", [record_of, upgrade_of])
def test_a_word_of_a_newer_version_that_decides_is_waited_for(read):
    """A step that guessed would write the guess back; an error that is not retried would fail the execution."""
    termination = {**new_record(a_subject(), FULL, NOW, deployment="a"), "status": "suspended"}
    upgrade = {"pk": "upgrade#web", "group": "web", "control": "hurry"}
    with pytest.raises(NewerRecordError, match=r"^\w+#.*is not a valid .*another version of Leeward"):
        read(termination if read is record_of else upgrade)


@pytest.mark.parametrize("change", [{"period": None}, {"causes": ["a"]}, {"subject": {}}, {"times": {"claimed": 7}}])
def test_a_record_in_another_shape_is_named_and_waited_for(change):
    item = new_record(a_subject(), FULL, NOW, deployment="a") | change
    with pytest.raises(NewerRecordError, match=rf"^termination#{INSTANCE}: .*another version of Leeward"):
        record_of(item)
    with pytest.raises(NewerRecordError, match=r"^upgrade#web: .*another version of Leeward"):
        upgrade_of({"pk": "upgrade#web", "group": "web", "orders": ["a"]})


@pytest.mark.parametrize(
    ("value", "wire"),
    [("a", {"S": "a"}), (7, {"N": "7"}), (True, {"BOOL": True}), ([], {"L": []}), ({"x": 1}, {"M": {"x": {"N": "1"}}})],
)
def test_each_type_has_its_letter(value, wire):
    assert to_wire(value) == wire


def test_a_value_that_no_record_holds_is_refused():
    with pytest.raises(TypeError, match="datetime"):
        to_wire({"at": NOW})


def test_a_table_that_does_not_exist_means_that_leeward_is_not_deployed(aws):
    """DynamoDB answers so of a table alone, whatever is asked of it."""
    aws.refuse("dynamodb", "get_item", "ResourceNotFoundException")
    aws.refuse("dynamodb", "put_item", "ResourceNotFoundException")
    table = DynamoTable(aws.clients, "leeward")
    for call in (lambda: table.get("pause#blue"), lambda: table.put({"pk": "a"}, condition="a")):
        with pytest.raises(NotDeployedError, match=r"^Leeward is not deployed there: DynamoDB has no table leeward$"):
            call()


class LostPut:
    """A table whose conditional writes fail; `there` is what the failure shows."""

    def __init__(self, there):
        self.there = there
        self.updates = 0

    def put(self, item, *, condition, values=None):
        return False, self.there

    def update(self, *_, **__):
        self.updates += 1


def test_the_first_caller_is_reported_so_even_when_its_answer_got_lost(monkeypatch):
    monkeypatch.setattr("leeward.adapters.aws.table.uuid.uuid4", lambda: uuid.UUID(int=7))
    span = timedelta(minutes=10)
    assert DynamoClaims(LostPut({"by": uuid.UUID(int=7).hex}), FakeClock(), DEPLOYMENT).once("k", span, NOW)
    assert not DynamoClaims(LostPut({"by": "another"}), FakeClock(), DEPLOYMENT).once("k", span, NOW)


def test_races_lost_without_end_are_for_later():
    table, clock = LostPut(new_record(a_subject(), FULL, NOW, deployment="a")), FakeClock()
    with pytest.raises(AwsUnavailableError, match=INSTANCE):
        DynamoClaims(table, clock, DEPLOYMENT).claim(a_subject(), OTHER, NOW)
    assert table.updates == ATTEMPTS
    assert sum(clock.slept) < 2


def test_a_claim_that_finds_a_record_reads_nothing_extra(aws):
    """One write for a new record or a known cause: a storm of a thousand warnings costs a thousand writes."""
    claims = DynamoClaims(DynamoTable(aws.clients, "leeward"), FakeClock(), DEPLOYMENT)
    aws.expect("dynamodb", "put_item", None)
    assert claims.claim(a_subject(), FULL, NOW).status is Status.OPEN


def test_throttling_of_the_table_is_said_with_its_key(aws):
    claims = DynamoClaims(DynamoTable(aws.clients, "leeward"), FakeClock(), DEPLOYMENT)
    aws.refuse("dynamodb", "get_item", "ProvisionedThroughputExceededException", "slow down")
    with pytest.raises(ThrottledError, match="GetItem on leeward/termination#i-0abc"):
        claims.read(INSTANCE)
