"""Worlds whose API server is busy or has just started: the model and the emulator, as a real one does it unasked."""

from collections.abc import Sequence
from pathlib import Path

from leeward.adapters.kubernetes.api import ClusterApi
from leeward.errors import AccessDeniedError, ThrottledError
from local.cluster.server import ClusterServer
from local.cluster.users import User
from tests.contract.worlds.clusters import ServedCluster, SimulatedCluster
from tests.fakes.clock import FakeClock

USER = "reader"
EVICTION = "create pods/eviction"


class TroubledModel(SimulatedCluster):
    """The model with faults as a simulation injects them."""

    def __init__(self) -> None:
        self._pauses: list[int] = []
        self._refused = ""
        self._starting = False
        super().__init__(self._disturb)

    def busy(self, *pauses: int, request: str = EVICTION) -> None:
        """Refuse the next requests of a kind, each with the pause that it asks for."""
        self._pauses, self._refused = list(pauses), request

    def start(self, *, done: bool) -> None:
        """Begin or end the moment after a start in which no role is known."""
        self._starting = not done

    def _disturb(self, request: str) -> None:
        if request == self._refused and self._pauses:
            raise ThrottledError("too many requests", float(self._pauses.pop(0)))
        if self._starting:
            raise AccessDeniedError(request)


class TroubledEmulator(ServedCluster):
    """The emulator with faults; its product's client is of a user without the group system:masters, and pauses in no
    time.
    """

    def __init__(self, kubeconfig: Path, server: ClusterServer) -> None:
        super().__init__(kubeconfig, patience=120)
        self.clock = FakeClock()
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "everything"}
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        with server.lock:
            server.authenticator.tokens[USER] = User(name=USER, groups=("system:authenticated",))
            server.model.create("clusterroles", {"metadata": {"name": role["name"]}, "rules": rules})
            subjects = [{"kind": "User", "name": USER}]
            binding = {"metadata": {"name": USER}, "roleRef": role, "subjects": subjects}
            server.model.create("clusterrolebindings", binding)
        self._product = self.client(USER, self.clock)
        self.api = ClusterApi(self._product)

    def busy(self, *pauses: int, request: str = EVICTION) -> None:
        """Refuse the next requests of a kind, each with the pause that it asks for."""
        verb, resource = request.split()
        for pause in pauses:
            fault = {"status": 429, "count": 1, "retryAfter": pause, "verb": verb, "resource": resource}
            self._call("POST", "/_local/faults", fault)

    def start(self, *, done: bool) -> None:
        """Begin or end the moment after a start in which no role is known."""
        self._call("PUT", "/_local/start-window", {"seconds": 0 if done else 600})

    def close(self) -> None:
        """Close the user's connections as well."""
        self._product.close()
        super().close()


Troubled = TroubledModel | TroubledEmulator
ASKED: Sequence[int] = (1, 2, 4, 8, 16, 32)  # by API priority and fairness, while the flood lasts
