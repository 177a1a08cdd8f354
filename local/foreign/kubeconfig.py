"""Access to the cluster of a kubeconfig's current context, by token or client certificate."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from local.cluster.certificates import load_chain


class KubeconfigError(Exception):
    """Error: the kubeconfig does not give what is needed; the message names the file and the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Server, its authority (PEM) and the credentials of the user: a token, or a certificate with its key (PEM)."""

    context: str
    url: str
    ca: str
    token: str = ""
    certificate: str = ""
    key: str = ""

    def headers(self) -> dict[str, str]:
        """Return the headers that authenticate a request; none for a client certificate."""
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def tls(self) -> ssl.SSLContext:
        """Return the client's TLS context."""
        context = ssl.create_default_context(cadata=self.ca)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # authorities of older clusters lack key identifiers
        if self.certificate:
            load_chain(context, self.certificate, self.key)
        return context


def read(path: Path) -> Access:
    """Return the access that the current context gives. Raises KubeconfigError."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = str(document["current-context"])
        named = {kind: {item["name"]: item for item in document[kind]} for kind in ("clusters", "users", "contexts")}
        chosen = named["contexts"][context]["context"]
        cluster, user = named["clusters"][chosen["cluster"]]["cluster"], named["users"][chosen["user"]]["user"]
        url = str(cluster["server"]).rstrip("/")
    except (OSError, KeyError, TypeError, yaml.YAMLError) as error:
        raise KubeconfigError(f"{path}: {_text(error)}") from error
    access = Access(
        context=context,
        url=url,
        ca=_data(path, cluster, "certificate-authority"),
        token=str(user.get("token") or ""),
        certificate=_data(path, user, "client-certificate"),
        key=_data(path, user, "client-key"),
    )
    if not access.token and not (access.certificate and access.key):
        raise KubeconfigError(
            f"{path}: user {chosen['user']} has neither a token nor a client certificate with its key; credentials "
            "of a command (exec) are not supported"
        )
    return access


def _data(path: Path, entry: Mapping[str, Any], key: str) -> str:
    """Return the PEM text of `KEY-data`, or of the file that `KEY` names relative to the kubeconfig."""
    try:
        if f"{key}-data" in entry:
            return base64.b64decode(entry[f"{key}-data"]).decode()
        return (path.parent / entry[key]).read_text(encoding="utf-8") if key in entry else ""
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"{path}: {key}: {_text(error)}") from error


def _text(error: Exception) -> str:
    return f"found no {error.args[0]!r}" if isinstance(error, KeyError) else str(error)
