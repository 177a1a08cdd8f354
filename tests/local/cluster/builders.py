"""Objects with defaults, and a cluster in virtual time."""

from __future__ import annotations

from typing import Any

from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from local.cluster.objects import Obj, name_of
from local.cluster.settings import ClusterSettings

START = 1_700_000_000.0


def a_template(app: str = "web", *, cpu: str = "100m", grace: int = 30, annotations=None, **spec: Any) -> Obj:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {
        "metadata": {"labels": {"app": app}, "annotations": annotations or {}},
        "spec": {"terminationGracePeriodSeconds": grace, "containers": [container], **spec},
    }


def a_pod(name: str = "lone", **template: Any) -> Obj:
    made = a_template(**template)
    return {"metadata": {**made["metadata"], "name": name}, "spec": made["spec"]}


def a_workload(app: str = "web", replicas: int = 3, **template: Any) -> Obj:
    selector = {"matchLabels": {"app": app}}
    spec = {"replicas": replicas, "selector": selector, "template": a_template(app, **template)}
    return {"metadata": {"name": app}, "spec": spec}


def a_daemonset(app: str = "agent", **template: Any) -> Obj:
    selector = {"matchLabels": {"app": app}}
    return {"metadata": {"name": app}, "spec": {"selector": selector, "template": a_template(app, **template)}}


def a_stateful_set(app: str = "db", replicas: int = 3, *, volumes: int = 1, spec: Obj | None = None, **template) -> Obj:
    """With so many claim templates (`data-0` …)."""
    made = a_workload(app, replicas, **template)
    claims = [
        {
            "metadata": {"name": f"data-{number}"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Gi"}}},
        }
        for number in range(volumes)
    ]
    made["spec"].update(serviceName=app, volumeClaimTemplates=claims, **(spec or {}))
    return made


def a_job(name: str = "sums", *, seconds: float = 60, exit_code: int = 0, spec: Obj | None = None, **template) -> Obj:
    """Its pods run for so many seconds and end with that code."""
    annotations = {"local.leeward.dev/run-seconds": str(seconds), "local.leeward.dev/exit-code": str(exit_code)}
    made = a_template(name, annotations=annotations, restartPolicy="Never", **template)
    return {"metadata": {"name": name}, "spec": {"template": made, **(spec or {})}}


def a_budget(app: str = "web", name: str | None = None, **spec: Any) -> Obj:
    return {"metadata": {"name": name or app}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}


class Lab:
    """A cluster whose time only passes when `run` says so."""

    def __init__(self, *, nodes: int = 0, seed: int = 0, **settings: Any) -> None:
        self.now = START
        self.cluster = Cluster(clock=lambda: self.now, seed=seed, settings=ClusterSettings(**settings))
        for index in range(nodes):
            self.add_node(f"n{index}", zone=f"us-east-1{'abc'[index % 3]}")

    def add_node(self, name: str, **spec: Any) -> None:
        self.cluster.add_node(NodeSpec(name=name, **spec))

    def run(self, seconds: float = 0.0) -> None:
        """Let `seconds` pass, jumping from one due thing to the next as a simulator does."""
        end = self.now + seconds
        due = self.cluster.step(self.now)
        while due is not None and due <= end:
            self.now = due
            due = self.cluster.step(self.now)
        self.now = end
        self.cluster.step(end)

    def create(self, resource: str, obj: Obj, namespace: str | None = None) -> Obj:
        return self.cluster.create(resource, obj, namespace)

    def deployed(self, app: str = "web", replicas: int = 3, **template: Any) -> list[str]:
        """A Deployment whose pods are ready; their names."""
        self.create("deployments", a_workload(app, replicas, **template))
        self.run(2)
        return self.pods(app)

    def pods(self, app: str = "web") -> list[str]:
        return [name_of(pod) for pod in self.cluster.list("pods", labels=f"app={app}")]

    def pod(self, name: str) -> Obj | None:
        return self.cluster.store.find("pods", name, "default")

    def nodes_of(self, app: str = "web") -> dict[str, str | None]:
        """Where each pod is."""
        return {name_of(pod): pod["spec"].get("nodeName") for pod in self.cluster.list("pods", labels=f"app={app}")}

    def unschedulable_message(self, name: str) -> str:
        """What the scheduler says about a pod that it cannot place."""
        self.run()
        condition = next(
            c for c in self.cluster.get("pods", name)["status"]["conditions"] if c["type"] == "PodScheduled"
        )
        assert condition["status"] == "False"
        return str(condition["message"])

    def attachments(self) -> list[tuple[str, bool]]:
        """(node, attached) of every VolumeAttachment."""
        found = self.cluster.list("volumeattachments")
        return [(entry["spec"]["nodeName"], entry["status"]["attached"]) for entry in found]

    def budget(self, name: str = "web") -> Obj:
        return self.cluster.get("poddisruptionbudgets", name)["status"]

    def reported(self, reason: str) -> list[tuple[str, str]]:
        """Name and source of the Events with that reason."""
        found = [event for event in self.cluster.list("events") if event["reason"] == reason]
        return [(one["involvedObject"]["name"], one["source"]["component"]) for one in found]

    def facts(self, kind: str) -> list[str]:
        return [fact.about for fact in self.cluster.history.facts() if fact.kind == kind]
