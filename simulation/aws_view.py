"""Part of the world's view that only rules about images and managed node groups read (`view.WorldView`)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from simulation.aws.managed import SimUpdate
from simulation.ordered import Ordered


class AwsView(Protocol):
    """Images, parameters and EKS as they stand. Sequences only ever grow at their end."""

    def image(self, instance: str) -> str:
        """Return the image from which EC2 launched the instance; empty for one that it does not know."""
        ...

    @property
    def launched_images(self) -> Mapping[str, str]:
        """Image that each group's next instance would have, by name."""
        ...

    @property
    def parameters(self) -> Mapping[str, str]:
        """Image behind each SSM parameter."""
        ...

    @property
    def readable(self) -> bool:
        """True if our role may read the parameters."""
        ...

    @property
    def decided(self) -> Sequence[tuple[float, float]]:
        """Runs of fn disruption-planner that met no error, each as (begin, end)."""
        ...

    @property
    def ordered(self) -> Sequence[Ordered]:
        """Requests of operators about upgrades."""
        ...

    @property
    def written(self) -> Sequence[tuple[str, str]]:
        """Templates and sizes of groups that we have changed, each as (group, what)."""
        ...

    @property
    def updates(self) -> Mapping[str, SimUpdate]:
        """Updates of managed node groups that EKS has taken, by id in their order."""
        ...

    def images_of(self, nodegroup: str) -> Sequence[str]:
        """Return the images of the versions of the node group's own launch template, empty without one."""
        ...
