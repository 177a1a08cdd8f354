"""Status codes and bodies of requests that a real API server (v1.36) answers in a way that is easily guessed wrong."""

from urllib.parse import quote

import pytest

from tests.contract.worlds.clusters import a_deployment, a_lone_pod, ready, there

EVENT_NAMES = ["Upper-Case.1", "x" * 260]


def an_event(world, name):
    about = {"kind": "Pod", "apiVersion": "v1", "name": "web", "namespace": world.namespace}
    return world.post("events", {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "message": "m"})


def settings(world):
    reply = world.post("configmaps", {"metadata": {"name": "settings"}})
    assert reply.code == 201, reply.body


def test_a_patch_with_another_uid_is_invalid(world):
    settings(world)
    reply = world.patch("configmaps", "settings", {"metadata": {"uid": "of-another"}})
    assert (reply.code, reply.reason, reply.body["details"]["kind"]) == (422, "Invalid", "ConfigMap")
    assert "metadata.uid: Invalid value" in reply.message


def test_a_patch_with_a_resource_version_that_is_no_number_is_500(world):
    settings(world)
    assert world.patch("configmaps", "settings", {"metadata": {"resourceVersion": "first"}}).code == 500


def test_a_patch_of_an_old_version_is_a_conflict(world):
    settings(world)
    reply = world.patch("configmaps", "settings", {"metadata": {"resourceVersion": "1"}, "data": {"a": "1"}})
    assert (reply.code, reply.reason, reply.body["details"]["kind"]) == (409, "Conflict", "configmaps")


@pytest.mark.parametrize("name", EVENT_NAMES, ids=["upper case", "260 characters"])
def test_an_event_may_have_a_name_that_no_other_object_may_have(world, name):
    assert an_event(world, name).code == 201
    assert world.post("configmaps", {"metadata": {"name": name}}).code == 422


def test_a_scale_below_zero_is_an_invalid_scale(world):
    a_deployment(world)
    reply = world.patch("deployments", "web", {"spec": {"replicas": -1}}, subresource="scale")
    assert (reply.code, reply.body["details"]["kind"]) == (422, "Scale")
    assert reply.message.startswith('Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1')


def test_an_event_in_a_terminating_namespace_is_forbidden(world):
    a_lone_pod(world, "held", finalizers=["example.com/held"])
    assert world.remove("namespaces", world.namespace).code == 200
    reply = world.until(lambda: refusal(an_event(world, "late")), "the namespace takes no Events")
    assert (reply.code, reply.reason) == (403, "Forbidden")
    (cause,) = reply.body["details"]["causes"]
    assert cause["reason"] == "NamespaceTerminating"
    assert "because it is being terminated" in reply.message
    world.until(lambda: (there(world, "held") or {"metadata": {}})["metadata"].get("deletionTimestamp"), "it leaves")
    assert world.patch("pods", "held", {"metadata": {"finalizers": None}}).code == 200
    world.until(lambda: an_event(world, "later").code == 404, "the namespace is gone")


def refusal(reply):
    return reply if reply.code >= 400 else None


def test_the_uid_precondition_of_a_deletion_names_the_kind(world):
    a_deployment(world)
    (name,) = ready(world, "web")
    reply = world.remove("pods", name, uid="of-another")
    assert (reply.code, reply.reason, reply.body["details"]["kind"]) == (409, "Conflict", "Pod")
    assert "does not match the UID in record" in reply.message


def test_a_forced_deletion_answers_without_grace(world):
    a_deployment(world)
    (name,) = ready(world, "web")
    assert world.remove("pods", name, grace=0).body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert there(world, name) is None


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("resourceVersion=0&limit=1", 200),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422),
        ("resourceVersion=first", 400),
        ("limit=-1", 200),
        ("limit=many", 400),
        ("resourceVersion=9000000000000000000", 504),
    ],
)
def test_a_list_judges_its_version_and_its_limit(served_world, query, code):
    for name in ("a", "b"):
        served_world.post("configmaps", {"metadata": {"name": name, "labels": {"of": "list"}}})

    def both():
        reply = served_world.list("configmaps", f"labelSelector=of%3Dlist&{query}")
        return reply if reply.code != 200 or len(reply.body["items"]) == 2 else None

    # resourceVersion=0 may be answered from a cache that does not have both yet
    reply = served_world.until(both, "both objects in the list")
    assert reply.code == code
    match code:
        case 504:
            assert (reply.reason, reply.body["details"]["retryAfterSeconds"]) == ("Timeout", 1)


def test_a_creation_without_a_body_is_a_bad_request(served_world):
    assert served_world.post("configmaps", None).code == 400


def test_a_cordoned_node_carries_the_taint_with_its_time(expendable_world):
    world = expendable_world
    node = world.nodes[0]
    assert world.patch("nodes", node, {"spec": {"unschedulable": True}}).code == 200

    def tainted():
        return world.patch("nodes", node, {}).body["spec"].get("taints")

    (taint,) = world.until(tainted, "the taint of a cordoned node")
    assert (taint["key"], "timeAdded" in taint) == ("node.kubernetes.io/unschedulable", True)


def test_an_unknown_field_is_dropped_with_a_warning(served_world):
    body = {"metadata": {"name": "settings", "colour": "red"}, "data": {"a": "1"}, "more": {"b": 2}}
    reply = served_world.post("configmaps", body)
    assert reply.code == 201
    assert "more" not in reply.body
    assert "colour" not in reply.body["metadata"]
    assert sorted(reply.warnings) == ['299 - "unknown field \\"metadata.colour\\""', '299 - "unknown field \\"more\\""']
    changed = served_world.patch("configmaps", "settings", {"more": 1, "data": {"b": "2"}})
    assert (changed.code, changed.body["data"]) == (200, {"a": "1", "b": "2"})
    assert "more" not in changed.body
    assert changed.warnings == ['299 - "unknown field \\"more\\""']


def test_a_patch_with_a_value_of_a_wrong_type_is_invalid_and_such_an_object_a_bad_request(served_world):
    node = served_world.nodes[0]
    reply = served_world.patch("nodes", node, {"spec": {"unschedulable": "yes"}})
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert served_world.patch("nodes", node, {"spec": {"taints": "all"}}).code == 422
    reply = served_world.post("configmaps", {"metadata": {"name": "settings"}, "immutable": "yes"})
    assert (reply.code, reply.reason) == (400, "BadRequest")


def test_a_budget_of_max_unavailable_over_a_pod_without_a_controller_allows_nothing(world):
    a_lone_pod(world, "alone")
    spec = {"selector": {"matchLabels": {"app": "alone"}}, "maxUnavailable": 1}
    world.create("poddisruptionbudgets", {"metadata": {"name": "alone"}, "spec": spec})
    metadata = {"name": "alone", "namespace": world.namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}

    def refusal_of_a_counted_budget():
        reply = world.post("pods", body, name="alone", subresource="eviction")
        return reply if "still being processed" not in reply.body["details"]["causes"][0]["message"] else None

    reply = world.until(refusal_of_a_counted_budget, "the budget is counted")
    (cause,) = reply.body["details"]["causes"]
    assert (reply.code, cause["reason"]) == (429, "DisruptionBudget")
    assert cause["message"] == "The disruption budget alone does not allow evicting pods currently"


def test_a_list_in_pages_is_one_snapshot(served_world):
    world = served_world
    names = [f"page-{number}" for number in range(5)]
    for name in names:
        assert world.post("configmaps", {"metadata": {"name": name, "labels": {"of": "pages"}}}).code == 201
    query, found, versions, token = "labelSelector=of%3Dpages&limit=2", [], set(), ""
    while True:
        reply = world.list("configmaps", f"{query}&continue={quote(token)}" if token else query)
        assert (reply.code, len(reply.body["items"]) <= 2) == (200, True)
        found += [item["metadata"]["name"] for item in reply.body["items"]]
        versions.add(reply.body["metadata"]["resourceVersion"])
        token = reply.body["metadata"].get("continue", "")
        if not token:
            break
        world.post("configmaps", {"metadata": {"name": f"late-{len(found)}", "labels": {"of": "pages"}}})
    assert (found, len(versions)) == (names, 1)


@pytest.mark.parametrize(("length", "code"), [(1024, 201), (1025, 422)])
def test_an_event_with_a_time_of_its_own_may_not_say_more_than_1024_characters(world, length, code):
    about = {"kind": "Pod", "apiVersion": "v1", "name": "web", "namespace": world.namespace}
    body = {
        **{"metadata": {"name": "a-long-note"}, "involvedObject": about, "reason": "R", "message": "m" * length},
        **{"eventTime": "2026-11-27T10:00:00.000000Z", "action": "Drain", "type": "Normal"},
        **{"reportingComponent": "example.com/drain", "reportingInstance": "drain-1"},
    }
    assert world.post("events", body).code == code


def test_a_finalizer_keeps_a_deleted_node_and_none_is_added_to_it(expendable_world):
    world = expendable_world
    name = world.nodes[1]
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    assert world.patch("nodes", name, held).code == 200
    assert world.remove("nodes", name).code == 200
    node = world.api.node(name)
    assert node is not None
    assert node.deleting
    more = {"metadata": {"finalizers": ["example.com/held", "example.com/more"]}}
    assert world.patch("nodes", name, more).code == 422
    world.api.remove_finalizer(node, "example.com/held")
    assert world.until(lambda: world.api.node(name) is None, "the node is gone")


def test_a_scale_is_written_at_the_version_that_was_read_alone(world):
    a_deployment(world)
    (pod,) = [pod for pod in world.api.pods() if pod.namespace == world.namespace]
    before = world.api.deployment_of(pod)
    assert before is not None
    assert world.api.scale(before, 2)
    assert not world.api.scale(before, 3)
    after = world.until(lambda: len(ready(world, "web")) == 2 and world.api.deployment_of(pod), "two replicas Ready")
    assert after.replicas == 2


def test_the_status_of_a_pod_is_written_by_itself_and_annotations_with_it(world):
    a_lone_pod(world, "alone")
    (pod,) = [pod for pod in world.api.pods() if pod.namespace == world.namespace]
    world.api.annotate_pods([pod], {"example.com/until": "noon"})()
    condition = {"type": "example.com/held", "status": "True", "reason": "Held", "message": "until noon"}
    conditions = [*there(world, "alone")["status"]["conditions"], condition]
    patch = {"spec": {"activeDeadlineSeconds": 5}, "status": {"conditions": conditions}}
    reply = world.patch("pods", "alone", patch, subresource="status")
    assert reply.code == 200
    assert "activeDeadlineSeconds" not in reply.body["spec"]
    assert "Held" in {one.get("reason") for one in reply.body["status"]["conditions"]}
    assert there(world, "alone")["metadata"]["annotations"]["example.com/until"] == "noon"
    world.patch("pods", "alone", {"status": {"conditions": []}})  # of the pod, which leaves its status alone
    assert "alone" in ready(world, "alone")


def test_a_resize_changes_the_sizes_of_a_pod_that_an_update_of_the_pod_may_not_change(world):
    a_lone_pod(world, "alone")
    (container,) = there(world, "alone")["spec"]["containers"]
    larger = {**container, "image": "another", "resources": {"requests": {"cpu": "60m", "memory": "16Mi"}}}
    patch = {"spec": {"containers": [larger]}}
    assert world.patch("pods", "alone", {"spec": {"containers": [{**larger, "image": container["image"]}]}}).code == 422
    reply = world.patch("pods", "alone", patch, subresource="resize")
    assert reply.code == 200, reply.body
    (changed,) = reply.body["spec"]["containers"]
    assert (changed["resources"]["requests"]["cpu"], changed["image"]) == ("60m", container["image"])


def test_a_pod_whose_claim_no_driver_can_allocate_is_not_placed(world):
    device = {"metadata": {"name": world.namespace}, "spec": {}}
    asked = [{"name": "gpu", "exactly": {"deviceClassName": world.namespace}}]
    try:
        assert world.post("deviceclasses", device).code == 201
        claim = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": asked}}}
        assert world.post("resourceclaims", claim).code == 201
        pod = {"metadata": {"name": "with-gpu"}, "spec": with_claim("gpu")}
        assert world.post("pods", pod).code == 201

        def refused():
            conditions = there(world, "with-gpu")["status"].get("conditions") or ()
            return [one["message"] for one in conditions if one["type"] == "PodScheduled" and one["status"] == "False"]

        (message,) = world.until(refused, "the scheduler has judged it")
        assert "cannot allocate all claims" in message
        (read,) = [pod for pod in world.api.pods() if pod.namespace == world.namespace]
        assert "resource claims" in read.beyond_limit  # planning moves it nowhere
    finally:
        world.remove("deviceclasses", world.namespace)


def with_claim(name):
    container = {"name": "main", "image": "busybox", "resources": {"claims": [{"name": name}]}}
    return {"containers": [container], "resourceClaims": [{"name": name, "resourceClaimName": name}]}


def test_a_path_that_does_not_exist_is_a_status_where_its_group_is_served(served_world):
    for path in ("/api/v1/things", "/apis/apps/v9/deployments", "/api/v1/namespaces/default/pods/absent/things"):
        reply = served_world.get(path)
        assert (reply.code, reply.reason, reply.body["details"]) == (404, "NotFound", {})
    assert served_world.get("/apis/nothing.example.com/v1/things").code == 404  # plain text up to 1.37


def test_a_version_of_the_future_is_waited_for_and_then_asked_for_again(served_world):
    reply = served_world.list("configmaps", "resourceVersion=9000000000000000000")
    assert (reply.code, reply.retry_after) == (504, 1)
