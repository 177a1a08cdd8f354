"""`ports.eks` on Amazon EKS: managed node groups, and their updates."""

from collections.abc import Mapping
from typing import Any, Unpack

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.errors import InvalidInputError
from leeward.model.nodegroup import Nodegroup
from leeward.ports.eks import ManagedState, ManagedUpdate, UpdateWanted


class EksNodegroups:
    """Node groups by DescribeNodegroup, one call each time: `leeward.node_template.cache` keeps the answers. `region`:
    the cluster's, the home Region when None.
    """

    def __init__(self, clients: AwsClients, region: str | None = None) -> None:
        self._clients = clients
        self._region = region

    def describe(self, cluster: str, name: str) -> Nodegroup:
        """Describe it. Raises ObjectGoneError for an unknown one, InvalidInputError for an unknown taint effect."""
        with aws_call("eks:DescribeNodegroup", f"{cluster}/{name}"):
            answer = self._clients.get("eks", region=self._region).describe_nodegroup(
                clusterName=cluster, nodegroupName=name
            )
        try:
            return Nodegroup.from_json(answer["nodegroup"])
        except InvalidInputError as error:
            raise InvalidInputError(f"eks:DescribeNodegroup on {cluster}/{name}: {error}") from error


class EksManagedUpdates:
    """Managed node group updates by UpdateNodegroupVersion, DescribeUpdate and DescribeNodegroup. `region`: the
    cluster's, the home Region when None.
    """

    def __init__(self, clients: AwsClients, region: str | None = None) -> None:
        self._clients = clients
        self._region = region

    def start(self, cluster: str, nodegroup: str, *, token: str, **wanted: Unpack[UpdateWanted]) -> str:
        """Start an update. Idempotent by EKS' client request token. A template version is of the node group's own
        launch template: EKS takes no other. Raises InvalidInputError (a TerminalError) for a node group without one,
        TerminalError where EKS refuses: an update runs already, or the version does not fit.
        """
        optional: dict[str, Any] = {}
        if (version := wanted.get("version")) is not None:
            optional["version"] = version
        if (release := wanted.get("release")) is not None:
            optional["releaseVersion"] = release
        if (template_version := wanted.get("template_version")) is not None:
            optional["launchTemplate"] = {**self._template_of(cluster, nodegroup), "version": template_version}
        with aws_call("eks:UpdateNodegroupVersion", f"{cluster}/{nodegroup}"):
            answer = self._client.update_nodegroup_version(
                clusterName=cluster,
                nodegroupName=nodegroup,
                force=wanted.get("force", False),
                clientRequestToken=token,
                **optional,
            )
        return str(answer["update"]["id"])

    def look(self, cluster: str, nodegroup: str, update: str) -> ManagedUpdate:
        """Read the update with one DescribeUpdate. Raises ObjectGoneError."""
        with aws_call("eks:DescribeUpdate", f"{cluster}/{nodegroup}/{update}"):
            answer = self._client.describe_update(name=cluster, nodegroupName=nodegroup, updateId=update)
        raw = answer["update"]
        return ManagedUpdate(
            id=update,
            state=ManagedState(raw["status"]),
            errors=tuple(_sentence(error) for error in raw.get("errors") or ()),
        )

    def nodegroup(self, cluster: str, name: str) -> Nodegroup:
        """Read the node group with one DescribeNodegroup, never from a cache."""
        return EksNodegroups(self._clients, self._region).describe(cluster, name)

    @property
    def _client(self) -> Any:
        return self._clients.get("eks", region=self._region)

    def _template_of(self, cluster: str, nodegroup: str) -> dict[str, str]:
        with aws_call("eks:DescribeNodegroup", f"{cluster}/{nodegroup}"):
            answer = self._client.describe_nodegroup(clusterName=cluster, nodegroupName=nodegroup)
        own = answer["nodegroup"].get("launchTemplate") or {}
        if own.get("id"):
            return {"id": own["id"]}
        if own.get("name"):
            return {"name": own["name"]}
        raise InvalidInputError(f"node group {cluster}/{nodegroup}: found no launch template, expected one of its own")


def _sentence(error: Mapping[str, Any]) -> str:
    about = ", ".join(error.get("resourceIds") or ())
    text = f"{error.get('errorCode', 'Unknown')}: {error.get('errorMessage', '')}".rstrip(": ")
    return f"{text} ({about})" if about else text
