"""Policy documents with defaults: `a_policy(drain={"force": True})` says only what the test is about."""

from leeward.policy.parse import parse_documents

API = "leeward.dev/v1"


def a_policy(name="web", *, selector=None, **spec):
    return {
        "apiVersion": API,
        "kind": "NodePolicy",
        "metadata": {"name": name},
        "spec": {"selector": selector or {"groups": ["web-*"]}, **spec},
    }


def some_settings(name="prod", **spec):
    return {"apiVersion": API, "kind": "ClusterSettings", "metadata": {"name": name}, "spec": spec}


def parse(*documents, cluster="prod"):
    return parse_documents([(f"p.yaml#{n}", document) for n, document in enumerate(documents, 1)], cluster=cluster)


def parse_one(**spec):
    return parse(a_policy(**spec)).policies[0]
