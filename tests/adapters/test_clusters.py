"""SSM and EKS: what is written down for a cluster, for how long it is kept, and the way in."""

import base64
import json

import pytest

from leeward.adapters.aws.clusters import ClusterEntry, EksClusters, EksKubeConfig
from leeward.adapters.aws.policies import ParameterStorePolicies
from leeward.adapters.kubernetes.client import Endpoint
from leeward.adapters.pauses import KnownPauses
from leeward.adapters.settings import ServedCluster
from leeward.errors import ClusterGoneError, ClusterUnreachableError, InvalidPolicyError
from leeward.model.pause import PauseRecord
from leeward.policy.document import AppliedPolicies
from simulation.aws.applied_policies import SimPolicyStore
from tests.fakes.clock import FakeClock


def parameter(name, value):
    return {"Name": f"/leeward/blue/policies/{name}", "Value": value if isinstance(value, str) else json.dumps(value)}


def a_document(name, **spec):
    selector = {"selector": {"groups": [f"{name}-*"]}}
    return {"apiVersion": "leeward.dev/v1", "kind": "NodePolicy", "metadata": {"name": name}, "spec": selector | spec}


class TestPolicies:
    def expect(self, aws, *pages):
        for number, page in enumerate(pages):
            asked = {"Path": "/leeward/blue/policies"} | ({"NextToken": str(number)} if number else {})
            more = {"NextToken": str(number + 1)} if number + 1 < len(pages) else {}
            aws.expect("ssm", "get_parameters_by_path", asked, {"Parameters": page, **more})

    def test_documents_keep_the_order_of_their_names_over_all_pages(self, aws):
        first, second, third = (parameter(f"0{n}-{name}", a_document(name)) for n, name in enumerate("abc"))
        self.expect(aws, [third, first], [second])
        found = ParameterStorePolicies(aws.clients, FakeClock(), "/leeward", SimPolicyStore()).of_cluster("blue")
        assert [policy.name for policy in found.policies] == ["a", "b", "c"]

    def test_they_are_read_again_after_a_minute(self, aws):
        clock = FakeClock()
        policies = ParameterStorePolicies(aws.clients, clock, "/leeward/", SimPolicyStore())
        self.expect(aws, [parameter("00-a", a_document("a"))])
        assert policies.of_cluster("blue") is policies.of_cluster("blue")
        clock.advance(seconds=60)
        self.expect(aws, [])
        assert policies.of_cluster("blue").policies == ()

    def test_where_the_deployment_has_none_the_applied_ones_are_in_force(self, aws):
        store = SimPolicyStore()
        documents = (("01-a", json.dumps(a_document("a"))), ("02-b", json.dumps(a_document("b"))))
        store.write(AppliedPolicies(cluster="blue", documents=documents))
        self.expect(aws, [])
        found = ParameterStorePolicies(aws.clients, FakeClock(), "/leeward", store).of_cluster("blue")
        assert ([policy.name for policy in found.policies], found.applied) == (["a", "b"], 1)

    def test_policies_of_the_deployment_win_over_applied_ones(self, aws):
        store = SimPolicyStore()
        store.write(AppliedPolicies(cluster="blue", documents=(("01-a", json.dumps(a_document("a"))),)))
        self.expect(aws, [parameter("00-c", a_document("c"))])
        found = ParameterStorePolicies(aws.clients, FakeClock(), "/leeward", store).of_cluster("blue")
        assert ([policy.name for policy in found.policies], found.applied) == (["c"], 0)

    def test_a_wrong_applied_document_is_named_with_its_version(self, aws):
        store = SimPolicyStore()
        store.write(AppliedPolicies(cluster="blue", documents=(("01-a", "{"),)))
        self.expect(aws, [])
        with pytest.raises(InvalidPolicyError, match="policy apply, version 1: 01-a"):
            ParameterStorePolicies(aws.clients, FakeClock(), "/leeward", store).of_cluster("blue")

    @pytest.mark.parametrize("value", ["{", "[]", a_document("a", drain={"timeout": "soon"})], ids=str)
    def test_a_wrong_document_is_named_and_not_kept(self, aws, value):
        policies = ParameterStorePolicies(aws.clients, FakeClock(), "/leeward", SimPolicyStore())
        self.expect(aws, [parameter("00-a", value)])
        with pytest.raises(InvalidPolicyError, match="/leeward/blue/policies/00-a"):
            policies.of_cluster("blue")
        self.expect(aws, [parameter("00-a", a_document("a"))])
        assert len(policies.of_cluster("blue").policies) == 1


class Tokens:
    def token(self, *, fresh=False):
        return "fresh" if fresh else "kept"


class TestClusters:
    def kube_config(self, aws):
        return EksKubeConfig(aws.clients, Tokens(), cluster="blue", region=None)

    def expect(self, aws, **cluster):
        aws.expect("eks", "describe_cluster", {"name": "blue"}, {"cluster": cluster})

    def test_an_endpoint_is_looked_up_once_and_again_when_it_stopped_answering(self, aws):
        kube_config = self.kube_config(aws)
        ca = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()
        self.expect(aws, endpoint="https://one", certificateAuthority={"data": ca})
        assert (
            kube_config.endpoint()
            == kube_config.endpoint()
            == Endpoint(url="https://one", ca="-----BEGIN CERTIFICATE-----")
        )
        self.expect(aws, endpoint="https://two", certificateAuthority={"data": ca})
        assert kube_config.endpoint(fresh=True).url == "https://two"
        assert (kube_config.token(), kube_config.token(fresh=True)) == ("kept", "fresh")

    def test_a_cluster_in_the_making_is_unreachable_and_one_that_is_not_is_gone(self, aws):
        kube_config = self.kube_config(aws)
        self.expect(aws, status="CREATING")
        with pytest.raises(ClusterUnreachableError, match="CREATING"):
            kube_config.endpoint()
        aws.refuse("eks", "describe_cluster", "ResourceNotFoundException", "No cluster found", status=404)
        with pytest.raises(ClusterGoneError, match="DescribeCluster on blue"):
            kube_config.endpoint()

    def test_clusters_come_in_the_settings_order_with_their_policies(self, aws):
        clock = FakeClock()
        served = [ServedCluster(name="blue"), ServedCluster(name="green")]
        policies = ParameterStorePolicies(aws.clients, clock, "/leeward", SimPolicyStore())
        pauses = KnownPauses(lambda cluster: PauseRecord(cluster=cluster), clock)
        entry = ClusterEntry(access=lambda _: None, event_lost=print)
        clusters = EksClusters(aws.clients, clock, served, policies, pauses, entry)
        aws.expect("ssm", "get_parameters_by_path", {"Path": "/leeward/green/policies"}, {"Parameters": []})
        assert clusters.names() == ("blue", "green")
        assert clusters.policies("green").settings.name == "green"
