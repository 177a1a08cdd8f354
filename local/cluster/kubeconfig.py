"""Files that a started cluster writes for its clients."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Address of a cluster and the values that a client needs to trust it."""

    name: str
    url: str
    port: int
    ca_pem: str
    version: str  # of the control plane, such as v1.36.2

    @property
    def ca_data(self) -> str:
        return base64.b64encode(self.ca_pem.encode()).decode()

    def as_json(self) -> dict[str, object]:
        """Return the keys of `aws eks describe-cluster`, and the port."""
        return {
            "endpoint": self.url,
            "certificateAuthorityData": self.ca_data,
            "port": self.port,
            "name": self.name,
            "version": self.version,
        }


def kubeconfig(endpoint: Endpoint, token: str) -> str:
    """Return a kubeconfig with one cluster, one user (by token) and one context, all named like the cluster."""
    name = endpoint.name
    cluster = {"server": endpoint.url, "certificate-authority-data": endpoint.ca_data}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False)


def write_files(directory: Path, endpoint: Endpoint, admin_token: str, *, given: str = "") -> None:
    """Write kubeconfig, ca.crt, admin-token, endpoint.json (the last one written); secrets are readable for the owner
    only. `given`: text of the kubeconfig of a cluster that is not ours.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "ca.crt").write_text(endpoint.ca_pem)
    for name, text in (("admin-token", admin_token), ("kubeconfig", given or kubeconfig(endpoint, admin_token))):
        path = directory / name
        path.touch(mode=0o600)
        path.write_text(text)
    (directory / "endpoint.json").write_text(json.dumps(endpoint.as_json(), indent=2) + "\n")
