"""`leeward drain` against a cluster, with fakes for AWS, Kubernetes and the table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters import wiring
from leeward.errors import ThrottledError
from leeward.model.pause import PauseRecord
from leeward.model.pod import Pod
from leeward.model.termination import NEVER, Cause, CauseKind, DrainOptions, Outcome
from leeward.policy.document import DrainPolicy
from leeward.termination.run import Run
from leeward.termination.steps import STEPS
from tests.fakes.builders import a_group, a_node, a_pause, a_policy, a_subject, an_instance, policies
from tests.fakes.system import FakeSystem
from tests.state_machines.walker import Walker

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LIVE = ("--cluster", "blue", "--now", "2026-05-01T12:00:00Z", "-o", "json", "--yes")


@pytest.fixture
def system(monkeypatch):
    policy = replace(a_policy(), drain=DrainPolicy(evict_unmanaged=False))
    system = FakeSystem(
        instances=[an_instance("i-0a"), an_instance("i-0b"), an_instance("i-0c", group="other")],
        groups=[a_group("web-a", "i-0a", "i-0b"), a_group("other", "i-0c")],
        nodes=[a_node("i-0a"), a_node("i-0b"), a_node("i-0c")],
        written=policies(policy),
    )
    monkeypatch.setattr(wiring, "command_line_ports", lambda cluster, region=None, account=None: system.ports)
    return system


def put_pod(system, node, name="lonely"):
    pod = Pod(namespace="shop", name=name, uid=name, node=node, phase="Running")
    system.kubernetes.by_key[pod.key] = pod


def test_a_pause_stands_above_a_dry_run(leeward, system):
    system.pauses.write(PauseRecord(cluster="blue", pauses=(a_pause(),)))
    shown = leeward("drain", "node-i-0a", "--dry-run", *LIVE[:4]).out
    assert shown.startswith("PAUSED: cluster blue: disruption, repair and upgrades, without an end, by ")


def test_a_dry_run_changes_nothing(leeward, system):
    result = leeward("drain", "node-i-0a", "--dry-run", *LIVE)
    assert (result.code, result.json["then"]) == (0, "terminate")
    assert "execution" not in result.json
    assert system.executions.started == []
    assert system.claims.read("i-0a") is None


def test_a_drain_claims_the_instance_and_starts_its_execution(leeward, system):
    result = leeward("drain", "node-i-0a", "--deadline", "2026-05-01T12:30:00Z", *LIVE)
    assert (result.code, result.json["execution"]) == (0, "i-0a-1")
    record = system.claims.read("i-0a")
    assert [cause.kind for cause in record.causes] == [CauseKind.MANUAL]
    assert record.options is not None
    assert record.options.deadline == NOW + timedelta(minutes=30)
    assert record.subject.node == "node-i-0a"
    assert system.executions.open == {"i-0a-1"}


def test_a_group_is_drained_node_by_node(leeward, system):
    result = leeward("drain", "--group", "web-a", *LIVE)
    assert [document["execution"] for document in result.json] == ["i-0a-1", "i-0b-1"]


def test_a_group_that_is_gone_is_known_by_the_tags_of_its_instances(leeward, system):
    del system.groups.by_name["web-a"]
    result = leeward("drain", "--group", "web-a", "--dry-run", *LIVE)
    assert [document["node"] for document in result.json] == ["node-i-0a", "node-i-0b"]


def test_a_drain_belongs_to_the_group_that_lists_the_instance(leeward, system):
    """The instance was attached a moment ago: EC2 still shows the tag of the group before, which no policy selects."""
    system.instances.put(an_instance("i-0a", group="other"))
    leeward("drain", "node-i-0a", *LIVE)
    assert system.claims.read("i-0a").subject.group == "web-a"


def test_an_execution_started_manually_belongs_to_the_group_that_lists_the_instance(system):
    system.instances.put(an_instance("i-0a", group="other"))
    run = {"instance": "i-0a"}
    STEPS["claim"](Run.from_json(run), {"step": "claim", "run": run, "execution": "manually"}, system.ports)
    assert system.claims.read("i-0a").subject.group == "web-a"


def test_a_new_drain_after_one_that_ended_is_the_next_attempt(leeward, system):
    leeward("drain", "node-i-0a", *LIVE)
    system.executions.end("i-0a", 1)
    again = leeward("drain", "node-i-0a", "--cluster", "blue", "--now", "2026-05-01T13:00:00Z", "-o", "json", "--yes")
    assert again.json["execution"] == "i-0a-2"


def test_a_pod_that_refuses_stops_the_whole_drain_before_it_begins(leeward, system):
    put_pod(system, "node-i-0b")
    result = leeward("drain", "--group", "web-a", *LIVE)
    assert result.code == 1
    assert [document["then"] for document in result.json] == ["terminate", "wait"]
    assert system.executions.started == []


def test_a_node_of_a_group_that_no_policy_selects_is_left_alone(leeward, system):
    result = leeward("drain", "node-i-0c", *LIVE)
    assert result.code == 1
    assert result.json["node"] == "node-i-0c"
    assert "refused: node-i-0c: no policy selects its group 'other', so Leeward leaves it alone" in result.err
    assert system.executions.started == []


def test_kubectls_flags_are_kept_with_the_cause_and_hold_for_every_step(leeward, system):
    put_pod(system, "node-i-0a")
    flags = ("--force", "--grace-period=5", "--skip-wait-for-delete-timeout=0", "--disable-eviction")
    started = leeward("drain", "node-i-0a", *flags, *LIVE)
    assert (started.code, started.json["execution"]) == (0, "i-0a-1")
    asked = system.claims.read("i-0a").options
    assert asked == DrainOptions(
        evict_unmanaged=True, grace_seconds=5, skip_wait_for_delete=NEVER, disable_eviction=True
    )
    reported = []
    delete = system.kubernetes.delete_pod
    system.kubernetes.delete_pod = lambda pod, grace: (reported.append((pod.key, grace)), delete(pod, grace))
    assert Walker(system).run("i-0a").ended == "Terminated"
    assert reported == [("shop/lonely", 5)]


def test_without_flags_the_policy_decides(leeward, system):
    leeward("drain", "node-i-0a", *LIVE)
    assert system.claims.read("i-0a").options is None


def test_flags_that_leave_something_in_the_way_start_nothing(leeward, system):
    put_pod(system, "node-i-0a")
    result = leeward("drain", "node-i-0a", "--force=false", *LIVE)
    assert (result.code, result.json["then"]) == (1, "wait")
    assert system.executions.started == []


class Story:
    """What happens during --follow: one step for every look."""

    def __init__(self, system, *steps):
        self.steps, self._sleep = list(steps), system.clock.sleep
        system.clock.sleep = self.sleep

    def sleep(self, seconds):
        self._sleep(seconds)
        self.steps.pop(0)()


TABLE = ("--cluster", "blue", "--now", "2026-05-01T12:00:00Z", "--yes")


def test_a_drain_is_followed_to_its_end(leeward, system):
    claims = system.claims
    Story(
        system,
        lambda: claims.note_attempt(
            "i-0a", 1, times={"draining": NOW}, blocked_by=["shop/web: pdb shop/web"], evicted=2
        ),
        lambda: claims.note_attempt("i-0a", 1, times={"drained": NOW}, blocked_by=[]),
        lambda: claims.close("i-0a", version=1, outcome=Outcome.TERMINATED, now=NOW),
    )
    result = leeward("drain", "node-i-0a", *TABLE)
    assert result.code == 0
    said = [line.partition("node-i-0a: ")[2] for line in result.err.splitlines()]
    assert said == [
        "waiting to begin, 0 pods evicted",
        "draining, 2 pods evicted, waits for shop/web: pdb shop/web",
        "settling, 2 pods evicted",
        "gone, 2 pods evicted",
    ]


def test_a_node_that_is_drained_alone_is_followed_until_it_is_empty(leeward, system):
    claims = system.claims
    Story(
        system,
        lambda: claims.note_attempt("i-0a", 1, times={"draining": NOW}, evicted=2),
        lambda: claims.close("i-0a", version=1, outcome=Outcome.KEPT, now=NOW),
    )
    result = leeward("drain", "node-i-0a", "--keep", *TABLE)
    assert (result.code, system.claims.read("i-0a").causes[0].options) == (0, DrainOptions(keep=True))
    assert "node-i-0a: started i-0a-1: drain, then keep it cordoned" in result.out
    assert "drained and cordoned, its instance is kept, 2 pods evicted" in result.err


def test_keep_is_refused_where_a_termination_is_under_way(leeward, system):
    assert leeward("drain", "node-i-0a", *LIVE).code == 0
    result = leeward("drain", "node-i-0a", "--keep", *LIVE)
    assert result.code == 1
    assert "refused: node-i-0a: its termination is under way, and --keep does not end it" in result.err
    assert len(system.claims.read("i-0a").causes) == 1


def test_keep_may_be_repeated_and_a_drain_without_it_terminates_after_all(leeward, system):
    assert leeward("drain", "node-i-0a", "--keep", *LIVE).code == 0
    assert leeward("drain", "node-i-0a", "--keep", "--now", "2026-05-01T12:00:01Z", *LIVE[:2], *LIVE[4:]).code == 0
    assert system.claims.read("i-0a").keeps
    assert leeward("drain", "node-i-0a", "--now", "2026-05-01T12:00:02Z", *LIVE[:2], *LIVE[4:]).code == 0
    assert not system.claims.read("i-0a").keeps


def test_there_is_nothing_to_keep_of_an_instance_that_has_ended(leeward, system):
    system.instances.set_state("i-0a", "terminated")
    result = leeward("drain", "node-i-0a", "--keep", *LIVE)
    assert (result.code, "its instance has ended, there is nothing to keep" in result.err) == (1, True)


def test_a_node_that_is_returned_is_reported_with_its_reason_and_exit_1(leeward, system):
    def returned():
        system.claims.failed("i-0a", "PodEvictionFailure: shop/web")
        system.claims.close("i-0a", version=1, outcome=Outcome.RETURNED_TO_SERVICE, now=NOW)

    Story(system, returned)
    result = leeward("drain", "node-i-0a", *TABLE)
    assert result.code == 1
    assert "in service again: PodEvictionFailure: shop/web" in result.err


def test_a_failure_that_is_tried_again_ends_the_following(leeward, system):
    def failed():
        system.claims.failed("i-0a", "AccessDeniedError: no")
        system.claims.note("i-0a", times={"retry": NOW})

    Story(system, failed)
    result = leeward("drain", "node-i-0a", *TABLE)
    assert (result.code, "failed: AccessDeniedError: no; tried again at" in result.err) == (1, True)


def test_a_table_that_throttles_for_a_moment_ends_no_following(leeward, system):
    claims = system.claims
    Story(
        system,
        lambda: claims.fail("read", ThrottledError("claims.read: rate exceeded"), times=1),
        lambda: claims.close("i-0a", version=1, outcome=Outcome.TERMINATED, now=NOW),
    )
    result = leeward("drain", "node-i-0a", *TABLE)
    assert result.code == 0
    said = [line.partition("node-i-0a: ")[2] for line in result.err.splitlines()]
    assert said[-2:] == ["not known now: claims.read: rate exceeded", "gone, 0 pods evicted"]


def test_all_nodes_of_a_group_are_followed_until_the_last_one(leeward, system):
    claims = system.claims
    Story(
        system,
        lambda: claims.close("i-0a", version=1, outcome=Outcome.TERMINATED, now=NOW),
        lambda: claims.close("i-0b", version=1, outcome=Outcome.TERMINATED, now=NOW),
    )
    result = leeward("drain", "--group", "web-a", *TABLE)
    assert result.code == 0
    assert [line.split(" ")[1] for line in result.err.splitlines() if "gone" in line] == ["node-i-0a:", "node-i-0b:"]


def test_a_ctrl_c_leaves_the_drain_running(leeward, system):
    def ctrl_c():
        raise KeyboardInterrupt

    Story(system, ctrl_c)
    result = leeward("drain", "node-i-0a", *TABLE)
    assert result.code == 130
    assert "still under way: node-i-0a" in result.err
    assert system.executions.open == {"i-0a-1"}


def test_watch_follows_also_where_the_output_is_json(leeward, system):
    def ctrl_c(_):
        raise KeyboardInterrupt

    system.clock.sleep = ctrl_c
    result = leeward("drain", "node-i-0a", "--watch", *LIVE)
    assert (result.code, result.json["execution"]) == (130, "i-0a-1")


def test_who_does_not_want_to_wait_does_not(leeward, system):
    assert leeward("drain", "node-i-0a", "--wait=false", *TABLE).code == 0
    assert system.clock.slept == []


def test_an_instance_that_has_ended_leaves_its_node_to_be_removed(leeward, system):
    system.instances.set_state("i-0a", "terminated")
    assert leeward("drain", "node-i-0a", "--dry-run", *LIVE).json["then"] == "remove-node"


def test_a_spot_deadline_that_the_table_knows_tightens_the_plan(leeward, system):
    warning = Cause(id="e", kind=CauseKind.SPOT_INTERRUPTION, at=NOW, deadline=NOW + timedelta(minutes=2))
    system.claims.claim(a_subject("i-0a"), warning, NOW)
    result = leeward("drain", "node-i-0a", "--dry-run", "--deadline", "2026-05-01T12:30:00Z", *LIVE)
    assert result.json["deadline"] == "2026-05-01T12:02:00Z"


def test_an_unknown_node_or_group_is_bad_input(leeward, system):
    assert "found no node 'x'" in leeward.refuses("drain", "x", *LIVE)
    assert "found no group 'x'" in leeward.refuses("drain", "--group", "x", *LIVE)


def test_a_cluster_that_does_not_answer_is_a_message_and_exit_1(leeward, system):
    system.kubernetes.down = True
    result = leeward("drain", "node-i-0a", *LIVE)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("leeward: ")
    assert "Traceback" not in result.err
