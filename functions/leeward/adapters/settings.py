"""Settings of a function, parsed from its environment into one frozen value.

Decides which variables a function must have and what each may contain; all problems are reported at once."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from leeward.errors import InvalidInputError
from leeward.model import well_known

T = TypeVar("T")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?", re.ASCII)


class KubernetesAccess(StrEnum):
    """Role with which a function signs in to the clusters; `none`: it never does.

    `taint`: reads, and patches Nodes (taints, labels, annotations, finalizers). `act`: drains, and removes Nodes.
    """

    NONE = "none"
    TAINT = "taint"
    ACT = "act"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCluster:
    """One cluster of the setting CLUSTERS. Roles are ARNs; an empty region is the function's own. `member_role`: of a
    cluster in another account or Region, the role that this function assumes there, with `external_id`.
    """

    name: str
    region: str = ""
    account: str = ""
    taint_role: str = ""
    act_role: str = ""
    member_role: str = ""
    external_id: str = ""

    def role(self, access: KubernetesAccess) -> str:
        """Return the ARN of the role for this access, empty where there is none."""
        roles = {KubernetesAccess.TAINT: self.taint_role, KubernetesAccess.ACT: self.act_role}
        return roles.get(access, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings that a deployment gives a function.

    `deployment`: id of the deployment, the value of its taint. `policy_prefix`: path of the policies in Parameter
    Store, without a trailing slash. `hook_topics`: ARNs of the topics whose hooks Leeward answers, beside those of its
    queue. `hook_mark`: NotificationMetadata of the hooks that Leeward creates, by which it recognises them.
    """

    clusters: tuple[ServedCluster, ...]
    deployment: str
    table_name: str
    state_machine_arn: str
    queue_arn: str
    dead_letter_queue_url: str
    policy_prefix: str
    kubernetes_access: KubernetesAccess
    hook_topics: tuple[str, ...] = ()
    hook_mark: str = well_known.HOOK_MARK
    caller: str = ""  # of a call of the command line: ARN of the caller, as far as it was asked for

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> "Settings":
        """Read the settings. Raises InvalidInputError with one line per problem: name, found, expected."""
        reader = _SettingsReader(environment)
        access = reader.read("KUBERNETES_ACCESS", KubernetesAccess, "one of taint, act, none")
        clusters = reader.read("CLUSTERS", _clusters, _CLUSTERS_EXPECTED) or ()
        elsewhere = any(cluster.member_role for cluster in clusters)
        settings = cls(
            clusters=_of_function(clusters, reader.text("FUNCTION")) if elsewhere else clusters,
            deployment=reader.read("DEPLOYMENT_ID", _label_value, "at most 63 letters, digits, -, _ and .") or "",
            table_name=reader.text("TABLE_NAME"),
            state_machine_arn=reader.read("STATE_MACHINE_ARN", _state_machine, "the ARN of a state machine") or "",
            queue_arn=reader.read("QUEUE_ARN", _arn, "the ARN of a queue") or "",
            dead_letter_queue_url=reader.text("DEAD_LETTER_QUEUE_URL"),
            policy_prefix=reader.read("POLICY_PREFIX", _path, 'a path such as "/leeward"') or "",
            kubernetes_access=access or KubernetesAccess.NONE,
            hook_topics=reader.read("HOOK_TOPICS", _arns, "a JSON list of ARNs", default="[]") or (),
            hook_mark=reader.read("HOOK_MARK", str, "a text", default=well_known.HOOK_MARK) or "",
        )
        reader.problems.extend(_missing_roles(settings))
        if reader.problems:
            raise InvalidInputError("\n".join(reader.problems))
        return settings

    @property
    def queue_url(self) -> str:
        """URL of the interruption queue, which is beside its dead-letter queue."""
        return f"{self.dead_letter_queue_url.rsplit('/', 1)[0]}/{self.queue_arn.rsplit(':', 1)[-1]}"

    @property
    def queue_arns(self) -> frozenset[str]:
        """ARNs of the queue and the topics; Leeward answers the hooks that notify one of them."""
        return frozenset({self.queue_arn, *self.hook_topics})


_CLUSTERS_EXPECTED = (
    'a JSON list of {"name", "region", "account", "taintRole", "actRole", "memberRole", "externalId"} '
    "with distinct names"
)
_CLUSTER_KEYS = {
    "name": "name",
    "region": "region",
    "account": "account",
    "taintRole": "taint_role",
    "actRole": "act_role",
    "memberRole": "member_role",
    "externalId": "external_id",
}


class _SettingsReader:
    """Reader of variables that collects their errors."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.problems: list[str] = []

    def text(self, name: str) -> str:
        return self.read(name, str, "a text") or ""

    def read(self, name: str, parse: Callable[[str], T], expected: str, default: str | None = None) -> T | None:
        value = self._environment.get(name, "") or default
        if not value:
            self.problems.append(f"{name}: found nothing, expected {expected}")
            return None
        try:
            return parse(value)
        except (ValueError, TypeError, KeyError, AttributeError):
            self.problems.append(f"{name}: found {value!r}, expected {expected}")
            return None


def _clusters(text: str) -> tuple[ServedCluster, ...]:
    clusters = tuple(_cluster(raw) for raw in _list(text))
    if len({cluster.name for cluster in clusters}) != len(clusters):
        raise ValueError("a name occurs twice")
    return clusters


def _cluster(raw: Any) -> ServedCluster:
    if not raw["name"] or not all(isinstance(raw.get(key) or "", str) for key in _CLUSTER_KEYS):
        raise ValueError("no name, or something that is no text")
    return ServedCluster(**{field: raw.get(key) or "" for key, field in _CLUSTER_KEYS.items()})


def _of_function(clusters: tuple[ServedCluster, ...], function: str) -> tuple[ServedCluster, ...]:
    """Return the clusters with the function's own member role: the setting has the stem that the roles of all
    functions share.
    """
    return tuple(
        replace(cluster, member_role=f"{cluster.member_role}-{function}") if cluster.member_role else cluster
        for cluster in clusters
    )


def _missing_roles(settings: Settings) -> list[str]:
    access = settings.kubernetes_access
    if access is KubernetesAccess.NONE:
        return []
    local = (cluster for cluster in settings.clusters if not cluster.member_role)
    without = [cluster.name for cluster in local if not cluster.role(access)]
    return [f"CLUSTERS: found no {access.value}Role of {name}, expected one" for name in without]


def _arns(text: str) -> tuple[str, ...]:
    return tuple(_arn(item) for item in _list(text))


def _arn(text: str) -> str:
    if not text.startswith("arn:"):
        raise ValueError(text)
    return text


def _state_machine(text: str) -> str:
    if ":stateMachine:" not in _arn(text):
        raise ValueError(text)
    return text


def _label_value(text: str) -> str:
    """Check the id as a label value: it is the value of a taint."""
    if not _LABEL_VALUE.fullmatch(text):
        raise ValueError(text)
    return text


def _path(text: str) -> str:
    if not text.startswith("/"):
        raise ValueError(text)
    return text.rstrip("/")


def _list(text: str) -> list[Any]:
    value = json.loads(text)
    if not isinstance(value, list):
        raise TypeError(text)
    return value
