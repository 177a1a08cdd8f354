"""Planted builds: admission, authorization and controllers of the local API server."""

from tests.simulation.mutations.editing import edit
from tests.simulation.mutations.plant import Planted

CLUSTER = "local.cluster"
ADMISSION = ("tests/contract/cluster/test_admission.py", "tests/local/cluster/test_admitter.py")

OF_THE_EMULATOR = (
    Planted(
        name="the local API server calls no validating webhook",
        story="stores the configuration and never reads it",
        edits=(edit(f"{CLUSTER}.validating.admitter.Admitter.check", "self._store.count(webhooks.WEBHOOKS)", "False"),),
        tests=ADMISSION,
    ),
    Planted(
        name="the local API server admits what a failing webhook guards",
        story="takes failurePolicy Fail for Ignore",
        edits=(
            edit(
                f"{CLUSTER}.validating.webhooks.refusal",
                'webhook.get("failurePolicy", "Fail") == "Ignore"',
                "True",
            ),
        ),
        tests=ADMISSION,
    ),
    Planted(
        name="the local API server evaluates no ValidatingAdmissionPolicy",
        story="stores policy and binding and never reads them",
        edits=(
            edit(f"{CLUSTER}.validating.admitter.Admitter.check", "if self._store.count(policies.BINDINGS):", "if 0:"),
        ),
        tests=ADMISSION,
    ),
    Planted(
        name="the local API server knows all roles from its first second",
        story="leaves out the window in which a real server refuses everything",
        edits=(edit(f"{CLUSTER}.rbac.Authorizer.filled", "self._clock() >= self._filled_at", "True"),),
        tests=("tests/local/cluster/test_access.py",),
    ),
    Planted(
        name="the local stack uses the cluster of a kubeconfig whose context was not confirmed",
        story="takes the file for the confirmation",
        edits=(edit("local.foreign.consent.confirmed", "if options.confirm != access.context:", "if False:"),),
        tests=("tests/local/foreign/test_consent.py",),
    ),
    Planted(
        name="the local API server creates objects in a terminating namespace",
        story="looks whether the namespace exists",
        edits=(edit(f"{CLUSTER}.model.Cluster._check_namespace", "if is_deleting(namespace):", "if False:"),),
        tests=("tests/contract/cluster/test_answers.py",),
    ),
    Planted(
        name="pods of a Node that is gone stay in the local cluster",
        story="leaves them to a kubelet that is gone",
        edits=(
            edit(
                f"{CLUSTER}.controllers.garbage.Garbage._collect_pods",
                "pods = self._world.store.pods_on(node)",
                "pods = []",
            ),
        ),
        tests=("tests/local/cluster/test_deletion.py",),
    ),
    Planted(
        name="the local API server stores values of a wrong type",
        story="drops unknown fields and believes the known ones",
        edits=(
            edit(
                f"{CLUSTER}.decoding.Decoder.decoded",
                "return obj if model is None else self._object(obj, model, ())",
                "return obj",
            ),
        ),
        tests=("tests/contract/cluster/test_answers.py", "tests/local/cluster/test_schemas.py"),
    ),
    Planted(
        name="the local API server ignores the limit of a list",
        story="answers everything at once, so that no client ever sees a second page",
        edits=(
            edit(
                f"{CLUSTER}.lists.Pager.page",
                '0 if request.resource_version == "0" else request.limit',
                "0",
            ),
        ),
        tests=("tests/local/cluster/test_http.py",),
    ),
)
