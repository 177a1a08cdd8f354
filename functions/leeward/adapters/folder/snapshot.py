"""Cluster at one moment, from a folder of raw `kubectl` and `aws` output (and `policy.yaml`).

Decides how nodes, instances, groups and policies are joined offline. Files that no command needs yet are only read when
they are requested."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from leeward.adapters.folder.files import FILES, POLICY_FILE, read_elements
from leeward.adapters.folder.policy_files import read_documents
from leeward.errors import InvalidInputError
from leeward.model.group import Group, LifecycleHook
from leeward.model.instance import Instance
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.policy.document import ClusterPolicies, NodePolicy
from leeward.policy.parse import parse_documents
from leeward.policy.selection import policy_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Contents of the folder. `hooks` by group, `instances` by id, `groups` by name, `daemon_sets` as namespace/name;
    `policies` None when there is no policy.yaml.
    """

    directory: Path
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    daemon_sets: frozenset[str] = frozenset()
    instances: Mapping[str, Instance] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    hooks: Mapping[str, Sequence[LifecycleHook]] = field(default_factory=dict)
    policies: ClusterPolicies | None = None
    _read: dict[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def read(cls, directory: str | Path, *, cluster: str | None = None) -> Self:
        """Read the folder; missing files count as empty. `cluster`: whose settings policy.yaml may hold, any when
        None. Raises InvalidInputError (InvalidPolicyError) naming file, path, found and expected.
        """
        folder = Path(directory)
        if not folder.is_dir():
            raise InvalidInputError(f"{folder}: found no such folder, expected a folder with nodes.json, pods.json …")
        hooks: dict[str, list[LifecycleHook]] = {}
        for raw in read_elements(folder, FILES["lifecycle-hooks"]):
            hook = LifecycleHook.from_json(raw)
            hooks.setdefault(hook.group, []).append(hook)
        groups = [Group.from_json(raw) for raw in read_elements(folder, FILES["auto-scaling-groups"])]
        instances = [Instance.from_json(raw) for raw in read_elements(folder, FILES["instances"])]
        return cls(
            directory=folder,
            nodes=tuple(Node.from_json(raw) for raw in read_elements(folder, FILES["nodes"])),
            pods=tuple(Pod.from_json(raw) for raw in read_elements(folder, FILES["pods"])),
            budgets=tuple(PodDisruptionBudget.from_json(raw) for raw in read_elements(folder, FILES["pdbs"])),
            daemon_sets=frozenset(_key(raw) for raw in read_elements(folder, FILES["daemonsets"])),
            instances={instance.id: instance for instance in instances},
            groups={group.name: group for group in groups},
            hooks=hooks,
            policies=_policies(folder / POLICY_FILE, cluster or ""),
        )

    def has(self, name: str) -> bool:
        """Return whether the folder holds NAME.json."""
        return (self.directory / f"{name}.json").is_file()

    def raw(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the elements of NAME.json unchanged (keys whose value is null left out), read once, none when missing.

        `subnets`, `instance-types`, `instance-status`, `launch-template-versions`, `launch-configurations`, `pvs`,
        `pvcs`, `volumeattachments`, `nodegroups`; `prices` is one element. Raises InvalidInputError.
        """
        if name not in self._read:
            self._read[name] = read_elements(self.directory, FILES[name])
        return self._read[name]

    def node(self, name: str) -> Node | None:
        """Return the node of that name."""
        return next((node for node in self.nodes if node.name == name), None)

    def node_of(self, instance: str) -> Node | None:
        """Return the node that the instance became, or None when it never joined."""
        return next((node for node in self.nodes if instance and node.instance_id == instance), None)

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Return the pods bound to the node."""
        return tuple(pod for pod in self.pods if pod.node == node)

    def group_of(self, instance: str) -> str | None:
        """Return the Auto Scaling group that lists the instance, else the one that its tag names."""
        for group in self.groups.values():
            if group.lifecycle_of(instance) is not None:
                return group.name
        known = self.instances.get(instance)
        return known.group if known else None

    def policy_of(self, group: str | None) -> NodePolicy | None:
        """Return the policy that selects the group: then it belongs to the cluster (docs/command-line.md)."""
        if group is None or self.policies is None:
            return None
        known = self.groups.get(group)
        return policy_for(self.policies.policies, group, known.tags if known else {})


def _policies(path: Path, cluster: str) -> ClusterPolicies | None:
    return parse_documents(read_documents(path), cluster=cluster) if path.exists() else None


def _key(raw: Mapping[str, Any]) -> str:
    return f"{raw['metadata'].get('namespace', 'default')}/{raw['metadata']['name']}"
