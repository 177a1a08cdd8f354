"""Raw Kubernetes JSON with defaults."""


def raw_node(name="node-a", *, uid="uid-a", version="7", taints=(), unschedulable=False, instance="i-0abc"):
    spec = {"providerID": f"aws:///us-east-1a/{instance}", "taints": list(taints)}
    if unschedulable:
        spec["unschedulable"] = True
    return {
        "metadata": {"name": name, "uid": uid, "resourceVersion": version},
        "spec": spec,
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def raw_pod(name="web-1", *, uid="uid-web-1", namespace="shop", node="node-a"):
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "labels": {"app": "web"}},
        "spec": {"nodeName": node, "containers": [{"name": "web", "env": [{"name": "X", "value": "y" * 200}]}]},
        "status": {"phase": "Running"},
    }


def listed(*items, more=None):
    return {"kind": "List", "metadata": {"continue": more} if more else {}, "items": list(items)}
