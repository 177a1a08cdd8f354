"""Places where new nodes can come up, and the new nodes that have come up in a world."""

from collections.abc import Iterable

from leeward.scheduling.nodes import NodeTemplate, Offering
from leeward.scheduling.pod_classes import Kind


class Opening:
    """One offering of a template. Nodes made of it keep their numbers from try to try; `mask` are all of them."""

    __slots__ = ("at", "mask", "never", "numbers", "template")

    def __init__(self, template: NodeTemplate, at: int) -> None:
        self.template, self.at = template, at
        self.numbers: list[int] = []
        self.mask = 0
        self.never: set[Kind] = set()  # kinds that not even an empty node of this opening can take

    @property
    def offering(self) -> Offering:
        """Offering that this opening stands for."""
        return self.template.offerings[self.at]

    @property
    def rank(self) -> tuple[float, str, int]:
        """Sort key, the cheapest first, then by name: the order in which templates are given makes no difference."""
        return self.offering.price, self.template.name, self.at


class Openings:
    """Openings of one world; `ranked`: all of them by rank.

    Templates are distinguished by identity: pass the same objects again.
    """

    __slots__ = ("_known", "ranked")

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Opening] = {}
        self.ranked: list[Opening] = []

    def of(self, templates: Iterable[NodeTemplate]) -> list[Opening]:
        """Return the openings of the templates."""
        return [self._of(template, at) for template in templates for at in range(len(template.offerings))]

    def _of(self, template: NodeTemplate, at: int) -> Opening:
        found = self._known.get((id(template), at))
        if found is None:
            found = self._known[id(template), at] = Opening(template, at)
            self.ranked = sorted((*self.ranked, found), key=lambda one: one.rank)
        return found
