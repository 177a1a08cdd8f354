"""What each port method asks of the API server, and which answers count as done."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters.kubernetes.api import CONFLICTS, POD_CONFLICTS, ClusterApi
from leeward.errors import AccessDeniedError, ClusterUnreachableError, ObjectGoneError, ThrottledError
from leeward.model.blocked import Obstacle
from leeward.model.node import Node, Taint
from leeward.model.pod import Pod
from leeward.ports.kubernetes import EvictionRefusedError
from leeward.time_budget import TimeBudget
from tests.adapters.kubernetes_objects import listed, raw_node, raw_pod
from tests.adapters.scripted_server import RESET, Reply, status

NOW = datetime(2026, 3, 2, 10, 4, tzinfo=UTC)
TAINT = Taint(key="leeward.dev/disrupted", effect="NoSchedule", value="spot_interruption")
RAW_TAINT = {"key": TAINT.key, "value": TAINT.value, "effect": TAINT.effect}
NOTED = {"leeward.dev/cordoned-by-drain": "true"}  # whose cordon it is
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-03-02T09:00:00Z"}
CONFLICT = status(409, "the object has been modified", reason="Conflict")


def a_node(**more):
    return Node.from_json(raw_node(**more))


def a_pod(**more):
    return Pod.from_json(raw_pod(**more))


def blocked(message="The disruption budget web needs 2 healthy pods and has 2 currently"):
    cause = {"reason": "DisruptionBudget", "message": message}
    return status(429, "Cannot evict pod", reason="TooManyRequests", causes=[cause], **{"Retry-After": "10"})


class TestReading:
    def test_a_node_is_read_fresh(self, connect):
        cluster = connect(Reply(200, raw_node()))
        assert cluster.api.node("node-a") == a_node()
        assert (cluster.seen[0].path, cluster.seen[0].query) == ("/api/v1/nodes/node-a", {})

    def test_a_node_that_is_not_there_is_none(self, connect):
        assert connect(status(404, "not found")).api.node("node-a") is None

    def test_pods_of_a_node_are_read_fresh(self, connect):
        cluster = connect(Reply(200, listed(raw_pod())))
        assert [pod.key for pod in cluster.api.pods_on("node-a")] == ["shop/web-1"]
        assert cluster.seen[0].query == {"fieldSelector": "spec.nodeName=node-a", "limit": "500"}

    def test_events_are_selected_by_the_server(self, connect):
        raw = {"metadata": {"name": "e", "namespace": "default"}, "reason": "DrainBlocked"}
        cluster = connect(Reply(200, listed(raw)))
        assert cluster.api.seen_events(lambda found: found["reason"], "source=leeward") == ("DrainBlocked",)
        assert cluster.seen[0].path == "/api/v1/events"
        assert cluster.seen[0].query == {"fieldSelector": "source=leeward", "limit": "500"}

    def test_budgets_and_daemon_sets(self, connect):
        named = {"metadata": {"name": "x", "namespace": "shop"}, "spec": {}, "status": {"disruptionsAllowed": 2}}
        cluster = connect(Reply(200, listed(named)))
        assert [budget.disruptions_allowed for budget in cluster.api.budgets()] == [2]
        assert cluster.api.daemon_sets() == {"shop/x"}

    def test_pods_of_a_node_as_the_api_server_remembers_them(self, connect):
        cluster = connect(Reply(200, listed(raw_pod())))
        cluster.api.pods_on("node-a", cached=True)
        wanted = {"fieldSelector": "spec.nodeName=node-a", "limit": "500", "resourceVersion": "0"}
        assert cluster.seen[0].query == wanted

    def test_budgets_of_one_namespace(self, connect):
        cluster = connect(Reply(200, listed()))
        assert cluster.api.budgets("shop") == ()
        assert cluster.seen[0].path == "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"

    def test_a_daemon_set_that_exists_is_asked_for_by_name_every_five_minutes(self, connect):
        cluster = connect(Reply(200, {"metadata": {"name": "x", "namespace": "shop"}}))
        api, wanted = cluster.api, frozenset({"shop/x"})
        for seconds in (0, 299):
            cluster.clock.advance(seconds=seconds)
            assert api.within(TimeBudget.of(cluster.clock, 10)).daemon_sets(among=wanted) == wanted
        assert [one.path for one in cluster.seen] == ["/apis/apps/v1/namespaces/shop/daemonsets/x"]
        cluster.clock.advance(seconds=1)
        api.daemon_sets(among=wanted)
        assert len(cluster.seen) == 2

    def test_a_daemon_set_that_does_not_exist_is_asked_for_each_time(self, connect):
        cluster = connect(status(404, "not found"))
        for _ in range(2):
            assert cluster.api.daemon_sets(among=frozenset({"shop/x"})) == frozenset()
        assert len(cluster.seen) == 2

    def test_many_daemon_sets_are_listed(self, connect):
        cluster = connect(Reply(200, listed({"metadata": {"name": "d0", "namespace": "shop"}})))
        assert cluster.api.daemon_sets(among=frozenset(f"shop/d{n}" for n in range(9))) == {"shop/d0"}
        assert [one.path for one in cluster.seen] == ["/apis/apps/v1/daemonsets"]


class TestMarking:
    def test_one_patch_taints_and_cordons_at_the_version_that_was_read(self, connect):
        answer = raw_node(version="8", taints=[RAW_TAINT], unschedulable=True)
        cluster = connect(Reply(200, answer))
        tainted = cluster.api.taint(a_node(), TAINT)
        assert (tainted.tainted, tainted.unschedulable) == (True, True)
        (patch,) = cluster.seen
        assert (patch.method, patch.headers["content-type"]) == ("PATCH", "application/merge-patch+json")
        assert patch.body == {
            "metadata": {"resourceVersion": "7", "annotations": NOTED},
            "spec": {"taints": [RAW_TAINT], "unschedulable": True},
        }

    def test_other_taints_stay_with_the_time_at_which_they_came(self, connect):
        cluster = connect(Reply(200, raw_node()))
        cluster.api.taint(a_node(taints=[UNREACHABLE]), TAINT)
        assert cluster.seen[0].body["spec"]["taints"] == [UNREACHABLE, RAW_TAINT]

    def test_nothing_happens_when_both_are_there(self, connect):
        cluster = connect()
        node = a_node(taints=[{**RAW_TAINT, "value": "manual"}], unschedulable=True)
        assert cluster.api.taint(node, TAINT) is node
        assert cluster.seen == []

    def test_a_node_can_be_tainted_without_being_cordoned(self, connect):
        cluster = connect(Reply(200, raw_node(taints=[RAW_TAINT])))
        cluster.api.taint(a_node(), TAINT, unschedulable=False)
        assert cluster.seen[0].body["spec"]["unschedulable"] is None

    def test_a_conflict_is_thought_over_on_a_fresh_copy(self, connect):
        fresh = raw_node(version="9", taints=[UNREACHABLE])
        cluster = connect(CONFLICT, Reply(200, fresh), Reply(200, raw_node(version="10")))
        cluster.api.taint(a_node(), TAINT)
        assert [seen.method for seen in cluster.seen] == ["PATCH", "GET", "PATCH"]
        assert cluster.seen[2].body["metadata"]["resourceVersion"] == "9"
        assert cluster.seen[2].body["spec"]["taints"] == [UNREACHABLE, RAW_TAINT]

    def test_a_patch_whose_answer_got_lost_is_found_done(self, connect):
        done = raw_node(version="8", taints=[RAW_TAINT], unschedulable=True)
        cluster = connect(RESET, CONFLICT, Reply(200, done))
        assert cluster.api.taint(a_node(), TAINT).resource_version == "8"
        assert [seen.method for seen in cluster.seen] == ["PATCH", "PATCH", "GET"]

    def test_conflicts_without_end_are_for_later(self, connect):
        cluster = connect(lambda seen: CONFLICT if seen.method == "PATCH" else Reply(200, raw_node()))
        with pytest.raises(ThrottledError, match="conflicts in a row"):
            cluster.api.taint(a_node(), TAINT)
        assert sum(seen.method == "PATCH" for seen in cluster.seen) == CONFLICTS

    def test_after_a_conflict_a_moment_of_random_length_passes(self, connect):
        cluster = connect(lambda seen: CONFLICT if seen.method == "PATCH" else Reply(200, raw_node()))
        with pytest.raises(ThrottledError):
            cluster.api.taint(a_node(), TAINT)
        assert len(set(cluster.clock.slept)) == CONFLICTS
        assert all(0.02 <= seconds <= 0.2 for seconds in cluster.clock.slept)

    @pytest.mark.parametrize("after", [status(404), Reply(200, raw_node(uid="uid-new"))], ids=["gone", "replaced"])
    def test_a_node_that_went_meanwhile_is_not_tainted_in_its_successor(self, connect, after):
        with pytest.raises(ObjectGoneError):
            connect(CONFLICT, after).api.taint(a_node(), TAINT)

    def test_a_node_that_is_gone_cannot_be_tainted(self, connect):
        with pytest.raises(ObjectGoneError):
            connect(status(404)).api.taint(a_node(), TAINT)

    def test_untainting_takes_off_our_taint_alone_and_uncordons(self, connect):
        cluster = connect(Reply(200, raw_node(taints=[UNREACHABLE])))
        node = replace(a_node(taints=[RAW_TAINT, UNREACHABLE], unschedulable=True), annotations=NOTED)
        cluster.api.untaint(node, TAINT)
        assert cluster.seen[0].body["spec"] == {"taints": [UNREACHABLE], "unschedulable": None}
        assert cluster.seen[0].body["metadata"]["annotations"] == dict.fromkeys(NOTED)

    def test_nothing_happens_to_a_node_that_is_not_tainted(self, connect):
        cluster = connect()
        assert cluster.api.untaint(a_node(taints=[UNREACHABLE]), TAINT).name == "node-a"
        assert cluster.seen == []


class TestEvicting:
    def test_exactly_this_pod_is_evicted(self, connect):
        cluster = connect(Reply(201, {"kind": "Status", "status": "Success"}))
        cluster.api.evict(a_pod())
        assert (cluster.seen[0].method, cluster.seen[0].path) == (
            "POST",
            "/api/v1/namespaces/shop/pods/web-1/eviction",
        )
        assert cluster.seen[0].body["deleteOptions"] == {"preconditions": {"uid": "uid-web-1"}}
        assert cluster.seen[0].body["apiVersion"] == "policy/v1"

    def test_a_pod_that_is_gone_is_done(self, connect):
        connect(status(404)).api.evict(a_pod())

    def test_a_pod_that_was_replaced_is_done(self, connect):
        cluster = connect(CONFLICT, Reply(200, raw_pod(uid="uid-new")))
        cluster.api.evict(a_pod())
        assert [seen.method for seen in cluster.seen] == ["POST", "GET"]

    def test_a_conflict_about_anything_else_is_no_excuse(self, connect):
        cluster = connect(CONFLICT, Reply(200, raw_pod()), Reply(201, {}))
        cluster.api.evict(a_pod())
        assert [seen.method for seen in cluster.seen] == ["POST", "GET", "POST"]

    def test_a_budget_that_forbids_it_is_named_and_not_asked_again(self, connect):
        cluster = connect(blocked())
        with pytest.raises(EvictionRefusedError, match="needs 2 healthy pods") as raised:
            cluster.api.evict(a_pod())
        assert (raised.value.budgets, raised.value.permanent) == (("shop/web",), False)
        assert (len(cluster.seen), cluster.clock.slept) == (1, [])

    @pytest.mark.parametrize(
        "message",
        [
            "The disruption budget web is still being processed by the server.",
            "The disruption budget web does not allow evicting pods currently because it failed sync: no scale",
        ],
    )
    def test_every_wording_of_the_api_server_names_its_budget(self, connect, message):
        with pytest.raises(EvictionRefusedError) as raised:
            connect(blocked(message)).api.evict(a_pod())
        assert raised.value.budgets == ("shop/web",)

    def test_a_budget_without_a_name_is_still_a_refusal(self, connect):
        with pytest.raises(EvictionRefusedError) as raised:
            connect(blocked("")).api.evict(a_pod())
        assert (raised.value.budgets, str(raised.value)) == ((), "Cannot evict pod")

    def test_several_budgets_forbid_it_for_good(self, connect):
        said = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        cluster = connect(status(500, said))
        with pytest.raises(EvictionRefusedError) as raised:
            cluster.api.evict(a_pod())
        assert raised.value.permanent
        assert len(cluster.seen) == 1

    @pytest.mark.parametrize(
        ("answer", "sentence"),
        [
            (
                status(403, 'poddisruptionbudget.policy "web" is forbidden: pdb disruptions allowed is negative'),
                'eviction refused: poddisruptionbudget.policy "web" is forbidden: pdb disruptions allowed is negative '
                "(HTTP 403)",
            ),
            (
                status(403, 'admission webhook "guard.example" denied the request: not now'),
                'webhook guard.example denies it: admission webhook "guard.example" denied the request: not now',
            ),
            (status(400, "admission says no"), "eviction refused: admission says no (HTTP 400)"),
            (
                status(500, 'Internal error occurred: failed calling webhook "guard.example": connection refused'),
                'webhook guard.example fails: Internal error occurred: failed calling webhook "guard.example": '
                "connection refused",
            ),
            (
                status(422, "pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'b' denied it"),
                "policy keep denies it: pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'b' "
                "denied it",
            ),
            (
                status(504, "couldn't update PodDisruptionBudget due to conflicts", **{"Retry-After": "10"}),
                "eviction fails: couldn't update PodDisruptionBudget due to conflicts (HTTP 504)",
            ),
            (
                status(429, "too many requests", **{"Retry-After": "30"}),
                "eviction fails: too many requests (HTTP 429)",
            ),
            (status(500, "etcd is away"), "eviction fails: etcd is away (HTTP 500)"),
        ],
        ids=["negative budget", "webhook denies", "admission 400", "dead webhook", "policy", "504", "429", "500"],
    )
    def test_what_one_pod_runs_into_is_named_at_once_and_speaks_for_no_other(self, connect, answer, sentence):
        cluster = connect(answer)
        with pytest.raises(EvictionRefusedError) as raised:
            cluster.api.evict(a_pod())
        assert (str(raised.value), raised.value.budgets, raised.value.permanent) == (sentence, (), False)
        assert (len(cluster.seen), cluster.clock.slept) == (1, [])
        assert Obstacle.read(sentence).sentence == sentence

    def test_conflicts_that_last_are_this_pods_alone(self, connect):
        cluster = connect(lambda seen: Reply(200, raw_pod()) if seen.method == "GET" else CONFLICT)
        with pytest.raises(EvictionRefusedError, match="eviction fails: the object has been modified"):
            cluster.api.evict(a_pod())
        assert sum(seen.method == "POST" for seen in cluster.seen) == POD_CONFLICTS
        assert sum(cluster.clock.slept) < 1

    def test_a_server_that_does_not_answer_at_all_is_unreachable(self, connect):
        cluster = connect(RESET)
        with pytest.raises(ClusterUnreachableError):
            cluster.api.evict(a_pod())
        assert len(cluster.seen) == 2

    def test_a_missing_permission_is_no_refusal(self, connect):
        said = 'pods "web-1" is forbidden: User "x" cannot create resource "pods/eviction" in API group ""'
        with pytest.raises(AccessDeniedError, match="create pods/eviction"):
            connect(status(403, said)).api.evict(a_pod())


class TestDeleting:
    def test_a_pod_is_deleted_with_its_own_grace_by_default(self, connect):
        cluster = connect(Reply(200, raw_pod()))
        cluster.api.delete_pod(a_pod())
        cluster.api.delete_pod(a_pod(), 0)
        own, none = (seen.body for seen in cluster.seen)
        assert own["preconditions"] == {"uid": "uid-web-1"}
        assert "gracePeriodSeconds" not in own
        assert none["gracePeriodSeconds"] == 0

    def test_a_deleted_or_replaced_pod_is_done(self, connect):
        connect(status(404)).api.delete_pod(a_pod())
        connect(CONFLICT, status(404)).api.delete_pod(a_pod())

    def test_a_deletion_passes_admission_too_and_its_failure_is_this_pods_alone(self, connect):
        dead = status(500, 'Internal error occurred: failed calling webhook "guard.example": connection refused')
        cluster = connect(dead)
        with pytest.raises(EvictionRefusedError, match=r"^webhook guard\.example fails"):
            cluster.api.delete_pod(a_pod())
        with pytest.raises(EvictionRefusedError, match=r"^deletion fails: slow down \(HTTP 429\)"):
            connect(status(429, "slow down")).api.delete_pod(a_pod())
        assert len(cluster.seen) == 1

    def test_a_missing_permission_to_delete_pods_is_no_refusal(self, connect):
        said = 'pods "web-1" is forbidden: User "x" cannot delete resource "pods" in API group ""'
        with pytest.raises(AccessDeniedError, match="delete pods"):
            connect(status(403, said)).api.delete_pod(a_pod())

    def test_a_node_is_deleted_by_its_uid(self, connect):
        cluster = connect(Reply(200, {"kind": "Status"}))
        cluster.api.delete_node(a_node())
        assert (cluster.seen[0].method, cluster.seen[0].body["preconditions"]) == ("DELETE", {"uid": "uid-a"})

    def test_a_node_that_came_back_under_its_name_is_left_alone(self, connect):
        cluster = connect(CONFLICT, Reply(200, raw_node(uid="uid-new")))
        cluster.api.delete_node(a_node())
        assert [seen.method for seen in cluster.seen] == ["DELETE", "GET"]

    def test_a_missing_permission_is_named(self, connect):
        with pytest.raises(AccessDeniedError, match="not allowed to delete nodes"):
            connect(status(403, "no")).api.delete_node(a_node())


class TestEvents:
    def test_an_event_says_about_whom_and_why(self, connect):
        cluster = connect(Reply(201, {}))
        cluster.api.event(a_node(), reason="DrainBlocked", message="x" * 3000, warning=True, now=NOW)
        body = cluster.seen[0].body
        assert cluster.seen[0].path == "/api/v1/namespaces/default/events"
        assert body["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "uid-a"}
        assert (body["type"], body["reason"], len(body["message"])) == ("Warning", "DrainBlocked", 1024)
        assert body["firstTimestamp"] == body["lastTimestamp"] == "2026-03-02T10:04:00Z"

    def test_an_event_about_a_pod_lives_beside_it(self, connect):
        cluster = connect(Reply(201, {}))
        cluster.api.event(a_pod(), reason="Evicted", message="spot", warning=False, now=NOW)
        assert cluster.seen[0].path == "/api/v1/namespaces/shop/events"
        assert cluster.seen[0].body["involvedObject"]["namespace"] == "shop"

    def test_a_repeat_within_ten_minutes_has_the_same_name(self, connect):
        cluster = connect(Reply(201, {}))
        for minute, reason in [(4, "A"), (9, "A"), (11, "A"), (4, "B")]:
            now = NOW.replace(minute=minute)
            cluster.api.event(a_node(), reason=reason, message="m", warning=False, now=now)
        first, repeat, later, other = (seen.body["metadata"]["name"] for seen in cluster.seen)
        assert first == repeat
        assert len({first, later, other}) == 3

    @pytest.mark.parametrize(
        "answer",
        [
            status(409, "exists", reason="AlreadyExists"),
            status(404, "no such namespace"),
            status(403, "it ends", causes=[{"reason": "NamespaceTerminating"}]),
        ],
        ids=["repeat", "namespace gone", "namespace ending"],
    )
    def test_an_event_that_cannot_or_need_not_be_written_is_done(self, connect, answer):
        cluster = connect(answer)
        cluster.api.event(a_pod(), reason="R", message="m", warning=False, now=NOW)
        assert len(cluster.seen) == 1

    @pytest.mark.parametrize(
        "answer", [status(403, "policy says no"), status(500, "failed calling webhook"), status(429, "busy"), RESET]
    )
    def test_an_event_that_is_refused_or_fails_is_lost_and_fails_nothing(self, connect, answer):
        lost = []
        cluster = connect(answer)
        api = ClusterApi(cluster.client, lost.append)
        api.event(a_node(), reason="R", message="m", warning=False, now=NOW)
        assert len(lost) == 1
        assert lost[0].startswith("Event R about node-a is lost: ")
        assert sum(cluster.clock.slept) < 1

    def test_after_an_event_without_an_answer_no_other_is_tried_for_half_a_minute(self, connect):
        cluster = connect(RESET)
        for seconds in (0, 1, 29, 30):
            now = NOW + timedelta(seconds=seconds)
            cluster.api.event(a_node(), reason=f"R{seconds}", message="m", warning=False, now=now)
        assert len({seen.body["reason"] for seen in cluster.seen}) == 2
