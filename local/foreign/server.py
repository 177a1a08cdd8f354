"""Given cluster as the local stack uses it: the proxy behind TLS, the mirror, the kubelets."""

from __future__ import annotations

import secrets
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from local.cluster.authn import Authenticator, Identify
from local.cluster.facts import FactRecorder
from local.cluster.history import History
from local.cluster.https import HttpsServer
from local.cluster.kubeconfig import Endpoint, write_files
from local.cluster.timers import ModelTime
from local.foreign.api import ApiClient
from local.foreign.contents import check_empty, remove
from local.foreign.kubeconfig import read
from local.foreign.kubelet import Kubelets
from local.foreign.losses import LossRecorder
from local.foreign.mirror import Mirror
from local.foreign.nodes import ApiNodes
from local.foreign.proxy import Proxy


class ForeignCluster:
    """Context manager of the processes' part for a given cluster. It raises NotEmptyError for one that is in use, and
    removes at its end what the run has put there.
    """

    def __init__(
        self, *, name: str, kubeconfig: Path, port: int, identify: Identify | None, pod_start: float, scale: float
    ) -> None:
        self._name, self._kubeconfig = name, kubeconfig
        self._api = ApiClient(read(kubeconfig))
        self._mirror = Mirror(self._api)
        self._kubelets = Kubelets(api=self._api, mirror=self._mirror, pod_start=pod_start, scale=scale)
        self._https = HttpsServer(name=name, port=port)
        self._token = secrets.token_urlsafe(32)
        authenticator = Authenticator(admin_token=self._token, cluster_name=name, clock=time.time, identify=identify)
        history = History(ModelTime(time.time))
        self._mirror.observe(FactRecorder(history).observe)
        self._mirror.observe(LossRecorder(self._mirror.store, history).observe)
        self._proxy = Proxy(api=self._api, authenticator=authenticator, mirror=self._mirror, history=history)
        self.version = ""
        self.lock = threading.RLock()

    @property
    def url(self) -> str:
        return self._https.url

    @property
    def nodes(self) -> ApiNodes:
        """Registry of the nodes, for the bridge."""
        return ApiNodes(self._api, self.version)

    def write_files(self, directory: Path) -> None:
        """Write ca.crt, admin-token, endpoint.json for the stack; `kubeconfig` is a copy of the given one, so that
        kubectl needs no proxy.
        """
        endpoint = Endpoint(
            name=self._name,
            url=self.url,
            port=self._https.port,
            ca_pem=self._https.ca_pem,
            version=self.version,
        )
        write_files(directory, endpoint, self._token, given=self._kubeconfig.read_text(encoding="utf-8"))

    def __enter__(self) -> Self:
        self.version = str(self._api.call("GET", "/version")["gitVersion"])
        check_empty(self._api)
        self._mirror.start()
        self._kubelets.start()
        self._https.start(self._proxy.application())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._https.stop()
        self._kubelets.scale = 0.0
        try:
            remove(self._api, self._proxy.applied)
        finally:
            self._kubelets.stop()
            self._mirror.stop()
