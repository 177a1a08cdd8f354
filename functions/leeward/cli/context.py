"""Cluster that a command works on: the ports of --cluster NAME or those of --snapshot DIR.

Decides which of the two is meant, and how a missing object is named; the command is the same for both."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leeward.cli.live import UnknownGroupError, live_ports
from leeward.cli.member import options_of
from leeward.cli.nearest import did_you_mean
from leeward.cli.output import tell
from leeward.errors import InvalidInputError, LeewardError
from leeward.model.instance import names_others

if TYPE_CHECKING:  # --help needs none of them
    from leeward.adapters.folder.reader import Folder
    from leeward.model.facts import ClusterFacts
    from leeward.model.group import Group
    from leeward.model.launch import LaunchTemplateRef
    from leeward.model.node import Node
    from leeward.ports import Ports

VERSIONS = "launch-template-versions"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterContext:
    """One cluster. `cluster`: its name, may be empty for a folder; `folder` None: the cluster is live. `options`: those
    that name it, for the commands that the output proposes.
    """

    ports: Ports
    cluster: str
    folder: Folder | None = None
    options: str = ""

    @property
    def knows_instances(self) -> bool:
        """False for a folder without instances.json: an instance that is not in it may well run."""
        return self.folder is None or self.folder.has("instances")

    def facts(self) -> ClusterFacts:
        """Return the facts that function sync has recorded: none before it has run, or without a table that can be
        read. Raises InvalidInputError for a broken file.
        """
        from leeward.model.facts import ClusterFacts

        try:
            return ClusterFacts.from_sheets(self.ports.catalog.read(self.cluster))
        except InvalidInputError:
            raise
        except LeewardError:
            return ClusterFacts()

    @property
    def knows_versions(self) -> bool:
        """False for a folder without launch-template-versions.json: a version that is not in it may well exist."""
        return self.folder is None or self.folder.has(VERSIONS)

    @property
    def has_policies(self) -> bool:
        """False for a folder without policy.yaml: nothing is selected, because no policy says what is."""
        return self.folder is None or self.folder.has_policies

    def group(self, name: str) -> Group:
        """Return the Auto Scaling group. Raises InvalidInputError when there is none, or the live one of that name has
        the tags of other clusters alone: a cluster of another account may have a group of the same name.
        """
        found = self.ports.groups.describe([name]).get(name)
        if found is None or (self.folder is None and names_others(found.tags, self.cluster)):
            raise self.unknown_group(name)
        return found

    def node(self, reference: str) -> Node:
        """Return the node of this name, `node/NAME`, short name or instance id. Raises InvalidInputError when there is
        none, or when several have the short name.
        """
        from leeward.cli.node_names import listed, node_among, plain

        kubernetes = self.ports.clusters.kubernetes(self.cluster)
        named = kubernetes.node(plain(reference))
        if named is not None:
            return named
        known = kubernetes.nodes()
        node = node_among(known, reference)
        if node is None:
            where = f"cluster {self.cluster}: nodes" if self.folder is None else f"{self.folder.path('nodes')}: items"
            names = [one.name for one in known]
            raise InvalidInputError(
                f"{where}: found no node {reference!r}, expected one of its nodes: {listed(names)}"
                f"{did_you_mean(plain(reference), [*names, *(one.instance_id for one in known)])}"
            )
        return node

    def unknown_group(self, name: str) -> InvalidInputError:
        """Return the error for an Auto Scaling group that does not exist."""
        from leeward.cli.node_names import listed

        names = [group.name for group in self.ports.groups.of_clusters([self.cluster])]
        if self.folder is None:
            where, whose = f"cluster {self.cluster}: Auto Scaling groups", "the cluster's"
        else:
            where, whose = f"{self.folder.path('auto-scaling-groups')}: AutoScalingGroups", "its"
        return UnknownGroupError(
            f"{where}: found no group {name!r}, expected one of {whose} groups: {listed(names)}"
            f"{did_you_mean(name, names)}"
        )

    def unknown_version(self, template: LaunchTemplateRef, version: str) -> InvalidInputError:
        """Return the error for a version that a launch template does not have."""
        name = template.id or template.name
        if self.folder is None:
            expected = "one of its versions"
            return InvalidInputError(
                f"LaunchTemplateVersions: found no version {version} of {name}, expected {expected}"
            )
        known = sorted(
            raw.get("VersionNumber", 0)
            for raw in self.folder.elements(VERSIONS)
            if template.id == raw.get("LaunchTemplateId")
            or (template.name and template.name == raw.get("LaunchTemplateName"))
        )
        expected = ", ".join(map(str, known)) or "its versions"
        return InvalidInputError(
            f"{self.folder.path(VERSIONS)}: LaunchTemplateVersions: found no version {version} of {name}, "
            f"expected one of {expected}"
        )


def context_of(arguments: argparse.Namespace, verb: str, say: Callable[[str], None] | None = None) -> ClusterContext:
    """Return the cluster of --snapshot or --cluster; the arguments' view gets the warnings about files that a folder
    lacks. `say` takes what matters of a folder although nothing fails, standard error without it. Raises
    InvalidInputError with neither option, or for a folder that does not exist.
    """
    if arguments.snapshot is not None:
        from leeward.adapters.folder.reader import Folder
        from leeward.adapters.folder.wiring import folder_ports  # late: live needs no parsers of files
        from leeward.cli.folder_files import check_files, missing_files

        folder = Folder(arguments.snapshot, arguments.cluster or "")
        check_files(folder, verb)
        arguments.view = arguments.view._replace(warnings=missing_files(folder, verb, arguments))
        return ClusterContext(
            ports=folder_ports(folder, arguments.now, say or tell), cluster=arguments.cluster or "", folder=folder
        )
    if arguments.cluster is None:
        raise InvalidInputError(
            f"{verb}: found neither --cluster nor --snapshot, expected --cluster NAME (live) or --snapshot DIR"
        )
    return ClusterContext(ports=live_ports(arguments), cluster=arguments.cluster, options=options_of(arguments))
