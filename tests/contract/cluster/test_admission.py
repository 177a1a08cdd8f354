"""Policies and webhooks that refuse or fail: in the model, over HTTP, and on a cluster that is given."""

import json
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.contract.worlds.clusters import a_deployment, ready

RULE = {"apiGroups": [""], "apiVersions": ["v1"]}
EVICTIONS = {**RULE, "operations": ["CREATE"], "resources": ["pods/eviction"]}
OTHER = "other.policies.example"  # names are unique in an object
GONE = 'Post "https://gone.{}.svc:443/check?timeout=10s": service "gone" not found'


@pytest.fixture
def planted(world):
    yield from planting(world)


def planting(world):
    """Creates cluster-wide objects and removes them afterwards: they would outlive the namespace."""
    made = []

    def plant(resource, body):
        reply = world.post(resource, body)
        assert reply.code == 201, reply.body
        made.append((resource, body["metadata"]["name"]))

    yield plant
    for resource, name in made:
        world.remove(resource, name)


def only_here(world):
    return {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}


def a_webhook(world, rule=EVICTIONS, **fields):
    """A configuration with one webhook, whose Service is absent unless `clientConfig` says otherwise."""
    service = {"name": "gone", "namespace": world.namespace, "path": "/check"}
    webhook = {
        "name": "engine.policies.example",
        "clientConfig": {"service": service, "caBundle": ""},
        "rules": [rule],
        "namespaceSelector": only_here(world),
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }
    return {"metadata": {"name": world.namespace}, "webhooks": [webhook]}


def a_policy(world, rule, expression="false", **validation):
    constraints = {"namespaceSelector": only_here(world), "resourceRules": [rule]}
    checks = [{"expression": expression, **validation}]
    return {"metadata": {"name": world.namespace}, "spec": {"matchConstraints": constraints, "validations": checks}}


def a_binding(world, *actions):
    return {
        "metadata": {"name": world.namespace},
        "spec": {"policyName": world.namespace, "validationActions": list(actions or ["Deny"])},
    }


def eviction(world, name, *, dry_run=False):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": world.namespace}}
    return world.post("pods", body, name=name, subresource="eviction", dry_run=dry_run)


def an_event(world, name="a-note", *, dry_run=False):
    about = {"kind": "Pod", "apiVersion": "v1", "name": "web", "namespace": world.namespace}
    body = {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "message": "m"}
    return world.post("events", body, dry_run=dry_run)


def refused(world, ask):
    """The first refusal of a dry run: a real server needs a moment until it observes a new policy or webhook."""

    def look():
        reply = ask()
        return reply if reply.code >= 400 else None

    return world.until(look, "a refusal")


def test_an_eviction_fails_with_500_while_the_service_of_a_webhook_is_gone(world, planted):
    a_deployment(world)
    (name,) = ready(world, "web")
    planted("validatingwebhookconfigurations", a_webhook(world))
    refused(world, lambda: eviction(world, name, dry_run=True))
    reply = eviction(world, name)
    why = f'failed calling webhook "engine.policies.example": failed to call webhook: {GONE.format(world.namespace)}'
    assert (reply.code, reply.reason) == (500, "InternalError")
    assert reply.message == f"Internal error occurred: {why}"
    assert reply.body["details"]["causes"] == [{"message": why}]
    assert name in ready(world, "web")


def test_a_webhook_that_fails_and_ignores_failures_lets_the_eviction_through(world, planted):
    a_deployment(world)
    (name,) = ready(world, "web")
    ignoring = a_webhook(world, failurePolicy="Ignore")
    failing = a_webhook(world, {**RULE, "operations": ["CREATE"], "resources": ["events"]}, name=OTHER)
    planted("validatingwebhookconfigurations", {**ignoring, "webhooks": ignoring["webhooks"] + failing["webhooks"]})
    refused(world, lambda: an_event(world, dry_run=True))  # by now the other webhook of the object is observed too
    assert eviction(world, name).code == 201
    assert name not in ready(world, "web")


def test_two_webhooks_of_one_name_in_an_object_are_refused(world):
    twice = a_webhook(world)
    twice["webhooks"] *= 2
    reply = world.post("validatingwebhookconfigurations", twice)
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert 'webhooks[1].name: Duplicate value: "engine.policies.example"' in reply.message


@pytest.mark.parametrize("resource", ["events", "configmaps"])
def test_a_failing_webhook_covers_the_resources_of_its_rules_alone(world, planted, resource):
    rule = {**RULE, "operations": ["CREATE"], "resources": [resource]}
    planted("validatingwebhookconfigurations", a_webhook(world, rule))
    creations = {
        "events": lambda dry_run: an_event(world, dry_run=dry_run),
        "configmaps": lambda dry_run: world.post("configmaps", {"metadata": {"name": "settings"}}, dry_run=dry_run),
    }
    refused(world, lambda: creations[resource](dry_run=True))
    codes = {name: create(dry_run=False).code for name, create in creations.items()}
    assert codes == {name: 500 if name == resource else 201 for name in creations}


def test_a_webhook_on_deletions_and_updates_keeps_an_object_as_it_is(world, planted):
    world.post("configmaps", {"metadata": {"name": "settings"}})
    rule = {**RULE, "operations": ["UPDATE", "DELETE"], "resources": ["configmaps"]}
    planted("validatingwebhookconfigurations", a_webhook(world, rule))
    reply = refused(world, lambda: world.patch("configmaps", "settings", {"data": {"a": "1"}}))
    assert reply.code == 500
    assert world.remove("configmaps", "settings").code == 500
    assert world.remove("configmaps", "no-such-thing").code == 404
    assert world.post("configmaps", {"metadata": {"name": "settings"}}).reason == "AlreadyExists"


def test_a_webhook_of_another_namespace_refuses_nothing_here(world, planted):
    elsewhere = {"matchLabels": {"kubernetes.io/metadata.name": "kube-public"}}
    here = a_webhook(world, {**RULE, "operations": ["CREATE"], "resources": ["configmaps"]})
    there = a_webhook(world, {**RULE, "operations": ["CREATE"], "resources": ["events"]}, namespaceSelector=elsewhere)
    there["webhooks"][0]["name"] = OTHER
    planted("validatingwebhookconfigurations", {**here, "webhooks": here["webhooks"] + there["webhooks"]})
    refused(world, lambda: world.post("configmaps", {"metadata": {"name": "settings"}}, dry_run=True))
    assert an_event(world).code == 201


def test_a_policy_denies_with_422_and_names_itself_and_its_binding(world, planted):
    rule = {**RULE, "operations": ["CREATE"], "resources": ["events"]}
    planted("validatingadmissionpolicies", a_policy(world, rule, message="no Events here"))
    planted("validatingadmissionpolicybindings", a_binding(world))
    refused(world, lambda: an_event(world, dry_run=True))
    reply = an_event(world)
    policy = world.namespace
    said = f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: no Events here"
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert reply.message == f'events "a-note" is forbidden: {said}'
    assert reply.body["details"] == {"name": "a-note", "kind": "events", "causes": [{"message": said}]}


def test_a_policy_denies_one_eviction_by_name_with_the_reason_it_gives(world, planted):
    a_deployment(world)
    a_deployment(world, "guarded")
    (name,), (guarded,) = ready(world, "web"), ready(world, "guarded")
    expression = f"!request.name.startsWith('guarded') && object.metadata.name != '{guarded}'"
    planted("validatingadmissionpolicies", a_policy(world, EVICTIONS, expression, reason="Forbidden"))
    planted("validatingadmissionpolicybindings", a_binding(world))
    refused(world, lambda: eviction(world, guarded, dry_run=True))
    reply = eviction(world, guarded)
    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert reply.message.endswith(f"denied request: failed expression: {expression}")
    assert eviction(world, name).code == 201


def test_a_policy_whose_binding_only_warns_denies_nothing(world, planted):
    rule = {**RULE, "operations": ["CREATE"], "resources": ["events", "configmaps"]}
    planted("validatingadmissionpolicies", a_policy(world, rule))
    planted("validatingadmissionpolicybindings", a_binding(world, "Warn"))
    assert an_event(world).code == 201


def test_admission_never_judges_the_objects_that_define_it(world, planted):
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    namespaced = a_webhook(world, {**everything, "scope": "Cluster"}, namespaceSelector=only_here(world))
    named = [{"name": "only-this", "expression": f"request.name == '{world.namespace}'"}]
    namespaced["webhooks"][0]["matchConditions"] = named
    planted("validatingwebhookconfigurations", namespaced)
    assert world.patch("validatingwebhookconfigurations", world.namespace, {"webhooks": []}).code == 200


@contextmanager
def a_backend(response, *, seconds=0.0):
    """A webhook on loopback that answers each AdmissionReview with this response, after so many seconds; yields its URL
    and what it saw.
    """
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            review = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append(review["request"])
            time.sleep(seconds)
            answer = {**review, "request": None, "response": {**response, "uid": review["request"]["uid"]}}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/check", seen
    finally:
        server.shutdown()
        server.server_close()


def test_a_webhook_with_a_url_is_asked_once_and_its_denial_carries_its_words(emulated):
    world = emulated
    a_deployment(world)
    (name,) = ready(world, "web")
    status = {"code": 403, "reason": "Forbidden", "message": "not today"}
    with a_backend({"allowed": False, "status": status}) as (url, seen):
        world.post("validatingwebhookconfigurations", a_webhook(world, clientConfig={"url": url}))
        reply = eviction(world, name)
    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert reply.message == 'admission webhook "engine.policies.example" denied the request: not today'
    (request,) = seen
    assert (request["operation"], request["subResource"], request["name"]) == ("CREATE", "eviction", name)
    assert request["object"]["kind"] == "Eviction"
    assert request["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


@pytest.mark.parametrize("seconds", [1, pytest.param(15, marks=pytest.mark.long)])
def test_a_webhook_that_takes_long_allows_the_eviction_beside_others(emulated, seconds):
    world = emulated
    for app in ("web", "guarded"):
        a_deployment(world, app)
    pods = {pod.name.partition("-")[0]: pod for pod in world.api.pods() if pod.namespace == world.namespace}
    with a_backend({"allowed": True}, seconds=seconds) as (url, seen):
        guard = a_webhook(world, clientConfig={"url": url}, timeoutSeconds=30)
        named = [{"name": "guarded", "expression": "request.name.startsWith('guarded')"}]
        guard["webhooks"][0]["matchConditions"] = named
        assert world.post("validatingwebhookconfigurations", guard).code == 201
        slow = world.api.beside(lambda: world.api.evict(pods["guarded"]))
        assert world.api.beside(lambda: world.api.evict(pods["web"]))(0.9)
        assert not slow(0)
        assert slow(seconds + 5)
    assert [request["name"] for request in seen] == [pods["guarded"].name]
    assert not set(ready(world, "guarded")) & {pods["guarded"].name}


def test_a_webhook_that_denies_without_a_word_is_400_and_one_that_allows_changes_nothing(emulated):
    world = emulated
    rule = {**RULE, "operations": ["CREATE"], "resources": ["configmaps"]}
    with a_backend({"allowed": True}) as (open_url, _), a_backend({"allowed": False}) as (shut_url, _):
        world.post("validatingwebhookconfigurations", a_webhook(world, rule, clientConfig={"url": open_url}))
        assert world.post("configmaps", {"metadata": {"generateName": "settings-"}}).code == 201
        change = a_webhook(world, rule, clientConfig={"url": shut_url})
        world.patch("validatingwebhookconfigurations", world.namespace, {"webhooks": change["webhooks"]})
        reply = world.post("configmaps", {"metadata": {"generateName": "settings-"}})
    assert reply.code == 400
    assert reply.message == 'admission webhook "engine.policies.example" denied the request without explanation'


def test_a_webhook_that_does_not_answer_in_time_fails_the_request(emulated):
    world = emulated
    with a_silent_backend() as url:
        planted = a_webhook(world, {**RULE, "operations": ["CREATE"], "resources": ["configmaps"]}, timeoutSeconds=1)
        planted["webhooks"][0]["clientConfig"] = {"url": url}
        world.post("validatingwebhookconfigurations", planted)
        reply = world.post("configmaps", {"metadata": {"name": "settings"}})
    assert reply.code == 500
    assert reply.message.endswith(f'failed to call webhook: Post "{url}?timeout=1s": context deadline exceeded')


@contextmanager
def a_silent_backend():
    """Accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/check"


def test_a_service_without_a_ready_pod_fails_the_webhook_and_one_with_such_a_pod_allows(expendable_world):
    world = expendable_world
    service = {"metadata": {"name": "gone"}, "spec": {"selector": {"app": "engine"}, "ports": [{"port": 443}]}}
    assert world.post("services", service).code == 201
    planted = a_webhook(world, {**RULE, "operations": ["CREATE"], "resources": ["configmaps"]})
    world.post("validatingwebhookconfigurations", planted)
    reply = world.post("configmaps", {"metadata": {"name": "settings"}})
    assert reply.message.endswith('?timeout=10s": no endpoints available for service "gone"')
    a_deployment(world, "engine")
    assert world.post("configmaps", {"metadata": {"name": "settings"}}).code == 201


def test_a_policy_that_the_cluster_cannot_evaluate_is_refused_on_creation(expendable_world):
    world = expendable_world
    reply = world.post("validatingadmissionpolicies", a_policy(world, EVICTIONS, "object.items.all(i, i > 0)"))
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert "spec.validations[0].expression" in reply.message
