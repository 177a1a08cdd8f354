"""What a pod asks for: NodeResourcesFit (component-helpers' PodRequests; KEP 753, 688, 2837) and NodePorts."""

import pytest

from leeward.errors import InvalidInputError
from leeward.scheduling.pods import HostPort, host_ports, pod_requests


def a_container(cpu, *, always=False, **more):
    policy = {"restartPolicy": "Always"} if always else {}
    return {"resources": {"requests": {"cpu": cpu}}, **policy, **more}


def cpu_of(*, containers=("1",), init=(), **spec):
    raw = {"containers": [a_container(cpu) for cpu in containers], "initContainers": list(init), **spec}
    return pod_requests(raw)["cpu"]


def test_containers_are_summed():
    assert cpu_of(containers=("1", "250m")) == 1250


def test_the_largest_init_container_counts_where_it_is_larger():
    assert cpu_of(containers=("1",), init=[a_container("3"), a_container("2")]) == 3000
    assert cpu_of(containers=("4",), init=[a_container("3")]) == 4000


def test_a_sidecar_counts_beside_the_containers():
    assert cpu_of(containers=("1",), init=[a_container("500m", always=True)]) == 1500


def test_an_init_container_runs_beside_the_sidecars_started_before_it_only():
    sidecar, ordinary = a_container("1", always=True), a_container("3")
    assert cpu_of(containers=("1",), init=[sidecar, ordinary]) == 4000
    assert cpu_of(containers=("1",), init=[ordinary, sidecar]) == 3000


def test_overhead_is_added():
    assert cpu_of(containers=("1",), overhead={"cpu": "250m"}) == 1250


def test_requests_of_the_pod_itself_replace_the_sum():
    assert cpu_of(containers=("1", "1"), resources={"requests": {"cpu": "500m"}}) == 500


def test_a_limit_without_a_request_is_the_request():
    assert pod_requests({"containers": [{"resources": {"limits": {"cpu": "2"}}}]})["cpu"] == 2000


def test_every_pod_takes_one_place():
    assert pod_requests({"containers": [{}]}) == {"pods": 1}


def test_a_malformed_quantity_is_named():
    with pytest.raises(InvalidInputError, match="cpu: found 'lots'"):
        cpu_of(containers=("lots",))


def test_host_ports_of_containers_and_sidecars_count_and_container_ports_alone_do_not():
    ports = [{"containerPort": 80}, {"containerPort": 443, "hostPort": 8443}]
    sidecar = a_container("1", always=True, ports=[{"containerPort": 1, "hostPort": 9000, "protocol": "UDP"}])
    ordinary = a_container("1", ports=[{"containerPort": 1, "hostPort": 9001}])
    spec = {"containers": [a_container("1", ports=ports)], "initContainers": [sidecar, ordinary]}
    assert host_ports(spec) == (HostPort(port=8443), HostPort(port=9000, protocol="UDP"))


def test_with_the_host_network_every_container_port_is_one_of_the_node():
    spec = {"hostNetwork": True, "containers": [a_container("1", ports=[{"containerPort": 80}])]}
    assert host_ports(spec) == (HostPort(port=80),)
