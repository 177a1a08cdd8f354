"""Who may in (tokens, EKS tokens, access entries) and what they may do (roles)."""

import base64
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import urlencode

import boto3
import pytest
from botocore.model import ServiceId
from botocore.signers import RequestSigner

from local.cluster.authn import AccessEntry, Authenticator, TokenRefused, presigned_url, same_principal
from local.cluster.errors import ApiError
from local.cluster.server import ClusterServer
from local.cluster.settings import ClusterSettings
from local.cluster.sts import arn_in, sts_identify
from tests.local.cluster.builders import START
from tests.local.cluster.conftest import Served

ROLE = "arn:aws:iam::111122223333:role/leeward/drainer"
SESSION = "arn:aws:sts::111122223333:assumed-role/drainer/leeward-run"


def a_token(*, signed: float = START, **changes: str | None) -> str:
    query = {
        "Action": "GetCallerIdentity",
        "Version": "2011-06-15",
        "X-Amz-Date": datetime.fromtimestamp(signed, UTC).strftime("%Y%m%dT%H%M%SZ"),
        "X-Amz-Expires": "60",
        "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
        "X-Amz-Signature": "0" * 64,
        **changes,
    }
    url = "https://sts.us-east-1.amazonaws.com/?" + urlencode({k: v for k, v in query.items() if v is not None})
    return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def an_authenticator(arn: str | None = SESSION, **changes) -> Authenticator:
    entry = AccessEntry(principal_arn=ROLE, groups=("leeward:act",))
    defaults = {"admin_token": "secret", "cluster_name": "demo", "clock": lambda: START, "entries": (entry,)}
    return Authenticator(**{**defaults, "identify": lambda url, cluster: arn, **changes})


def test_an_eks_token_of_a_session_gets_the_groups_of_its_roles_access_entry():
    user = an_authenticator().user(f"Bearer {a_token()}")
    assert user.name == SESSION
    assert user.groups == ("leeward:act", "system:authenticated")


def test_a_user_name_pattern_is_filled_in():
    entry = AccessEntry(principal_arn=ROLE, username="leeward:{{SessionName}}")
    user = an_authenticator("arn:aws:sts::111122223333:assumed-role/drainer/a@b", entries=(entry,)).user(
        f"Bearer {a_token()}"
    )
    assert user.name == "leeward:a-b"


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (a_token(signed=START - 901), "901 s ago"),
        (a_token(signed=START + 301), "-301 s ago"),
        (a_token(**{"X-Amz-SignedHeaders": "host"}), "signed headers"),
        (a_token(**{"X-Amz-Signature": None}), "not signed"),
        (a_token(**{"X-Amz-Date": "yesterday"}), "does not parse"),
        (a_token(Action="AssumeRole"), "GetCallerIdentity"),
        ("k8s-aws-v1.__4", "decode"),
        ("k8s-aws-v1." + "A" * 5000, "too large"),
    ],
)
def test_a_token_that_is_old_or_not_signed_for_a_cluster_is_refused(token, why):
    with pytest.raises(TokenRefused, match=why):
        presigned_url(token, now=START)


def test_a_token_lives_for_fifteen_minutes_whatever_its_expires_says():
    assert presigned_url(a_token(signed=START - 899), now=START).startswith("https://sts.")


@pytest.mark.parametrize(
    "authenticator",
    [
        an_authenticator(None),
        an_authenticator(SESSION.replace("drainer", "stranger")),
        an_authenticator(SESSION.replace("1111", "9999")),
        an_authenticator(identify=None),
    ],
)
def test_unknown_callers_are_401(authenticator):
    with pytest.raises(ApiError) as refused:
        authenticator.user(f"Bearer {a_token()}")
    assert refused.value.code == 401
    assert authenticator.last_refusal


def test_role_arns_cover_their_sessions_without_their_path_and_nothing_else():
    assert same_principal(ROLE, SESSION)
    assert same_principal("arn:aws:iam::111122223333:user/me", "arn:aws:iam::111122223333:user/me")
    assert not same_principal(ROLE, SESSION.replace("drainer", "drainer2"))
    assert not same_principal(ROLE.replace("role", "user"), SESSION)


def test_sts_is_asked_once_a_minute_per_token():
    asked, now = [], [START]

    def identify(url: str, cluster: str) -> str:
        asked.append(cluster)
        return SESSION

    authenticator = an_authenticator(identify=identify, clock=lambda: now[0])
    token = f"Bearer {a_token()}"
    authenticator.user(token)
    authenticator.user(token)
    now[0] += 61
    authenticator.user(token)
    assert asked == ["demo", "demo"]


def test_arns_are_read_from_xml_and_json():
    xml = f"<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>{SESSION}</Arn>"
    assert arn_in(xml) == SESSION
    assert arn_in('{"GetCallerIdentityResponse": {"GetCallerIdentityResult": {"Arn": "a"}}}') == "a"
    assert arn_in("<Error/>") is None


class FakeSts(BaseHTTPRequestHandler):
    """Answers like STS, and only when the cluster header is there."""

    def do_GET(self) -> None:
        good = self.headers["x-k8s-aws-id"] == "demo" and "Action=GetCallerIdentity" in self.path
        body = f"<Arn>{SESSION}</Arn>".encode() if good else b""
        self.send_response(200 if good else 403)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def sts_url():
    server = HTTPServer(("127.0.0.1", 0), FakeSts)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def a_real_token() -> str:
    """As botocore signs it, with credentials of no principal."""
    session = boto3.Session("AKIAEXAMPLE", "secret", "session", "us-east-1")
    signer = RequestSigner(ServiceId("STS"), "us-east-1", "sts", "v4", session.get_credentials(), session.events)
    url = "https://sts.us-east-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15"
    request = {"method": "GET", "url": url, "body": {}, "headers": {"x-k8s-aws-id": "demo"}, "context": {}}
    signed = signer.generate_presigned_url(request, region_name="us-east-1", expires_in=60, operation_name="")
    return "k8s-aws-v1." + base64.urlsafe_b64encode(signed.encode()).decode().rstrip("=")


def test_a_token_signed_by_botocore_opens_the_served_cluster_for_its_role_only(sts_url):
    with ClusterServer(identify=sts_identify(sts_url)) as server:
        served = Served(server)
        client = served.client(a_real_token())
        assert client.json("GET", "/api/v1/nodes")[0] == 401
        entries = [{"principalArn": ROLE, "kubernetesGroups": ["leeward:read"]}]
        assert served.admin.json("PUT", "/_local/access-entries", entries)[0] == 200
        assert client.json("GET", "/api/v1/nodes")[0] == 403
        grant(served, "leeward:read", [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}])
        assert client.json("GET", "/api/v1/nodes")[0] == 200
        served.close()


def grant(served: Served, group: str, rules: list[dict]) -> None:
    with served.server.lock:
        name = group.replace(":", "-")
        served.server.model.create("clusterroles", {"metadata": {"name": name}, "rules": rules})
        subject = {"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}
        binding = {"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": name}, "subjects": [subject]}
        served.server.model.create("clusterrolebindings", binding)


@pytest.fixture
def limited(served):
    """A client whose group may list nodes, get one of them and evict pods."""
    from local.cluster.users import User

    served.server.authenticator.tokens["limited"] = User(name="limited", groups=("few", "system:authenticated"))
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"], "resourceNames": ["n0"]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]},
    ]
    grant(served, "few", rules)
    return served.client("limited")


def test_what_no_rule_allows_is_403_in_the_servers_words(limited):
    status, body = limited.json("GET", "/api/v1/namespaces/default/pods")
    message = 'pods is forbidden: User "limited" cannot list resource "pods" in API group "" in the namespace "default"'
    assert (status, body["reason"], body["message"]) == (403, "Forbidden", message)
    status, body = limited.json("PATCH", "/api/v1/nodes/n0", {}, content_type="application/merge-patch+json")
    assert body["message"].startswith('nodes "n0" is forbidden: User "limited" cannot patch resource "nodes"')


def test_verbs_names_subresources_and_groups_are_distinguished(limited):
    assert limited.json("GET", "/api/v1/nodes")[0] == 200
    assert limited.json("GET", "/api/v1/nodes?watch=1")[0] == 403
    assert limited.json("GET", "/api/v1/nodes/n0")[0] == 404  # allowed, but not there
    assert limited.json("GET", "/api/v1/nodes/n1")[0] == 403
    assert limited.json("POST", "/api/v1/namespaces/default/pods/p/eviction", {})[0] == 404
    assert limited.json("DELETE", "/api/v1/namespaces/default/pods/p")[0] == 403
    assert limited.json("GET", "/apis/apps/v1/deployments")[0] == 200


def test_discovery_is_open_to_known_principals_and_health_to_all(served, limited):
    stranger = served.client(None)
    assert limited.json("GET", "/api/v1")[0] == 200
    assert stranger.request("GET", "/readyz").status == 200
    status, body = stranger.json("GET", "/api/v1")
    assert (status, body["message"]) == (403, 'forbidden: User "system:anonymous" cannot get path "/api/v1"')
    assert served.client("wrong").json("GET", "/readyz")[0] == 401


def test_the_local_switches_are_for_the_admin_only(served, limited):
    assert limited.json("GET", "/_local/history")[0] == 403
    assert served.client(None).json("GET", "/_local/history")[0] == 403


def test_what_was_used_is_counted_so_that_a_role_can_be_compared_with_it(served, limited):
    limited.json("GET", "/api/v1/nodes")
    limited.json("GET", "/api/v1/nodes")
    limited.json("GET", "/api/v1/pods")
    used = [entry for entry in served.admin.get("/_local/access-used") if entry["user"] == "limited"]
    assert used == [{"user": "limited", "verb": "list", "apiGroup": "", "resource": "nodes", "count": 2}]


def test_a_role_in_a_namespace_reaches_no_further(served, limited):
    rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list"]}]
    with served.server.lock:
        model = served.server.model
        model.create("roles", {"metadata": {"name": "leases"}, "rules": rules}, "kube-system")
        subject = {"kind": "User", "name": "limited"}
        binding = {"metadata": {"name": "leases"}, "roleRef": {"kind": "Role", "name": "leases"}}
        model.create("rolebindings", {**binding, "subjects": [subject]}, "kube-system")
    leases = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
    assert limited.json("GET", leases.format("kube-system"))[0] == 200
    assert limited.json("GET", leases.format("default"))[0] == 403


def test_after_a_start_roles_are_unknown_for_a_while_and_the_health_check_fails(served, limited):
    def codes():
        return [limited.request("GET", path).status for path in ("/readyz", "/api/v1/nodes", "/api/v1")]

    assert codes() == [200, 200, 200]
    assert served.admin.json("PUT", "/_local/start-window", {"seconds": 600})[0] == 200
    assert codes() == [500, 403, 403]
    assert served.admin.request("GET", "/api/v1/nodes").status == 200  # system:masters needs no role
    assert served.admin.json("PUT", "/_local/start-window", {"seconds": 0})[0] == 200
    assert codes() == [200, 200, 200]
    assert served.admin.json("PUT", "/_local/start-window", {"seconds": "long"})[0] == 400


def test_a_server_may_start_with_such_a_window():
    with ClusterServer(settings=ClusterSettings(start_window=600)) as server:
        served = Served(server)
        assert served.admin.request("GET", "/readyz").status == 500
        served.close()
