"""Offerings in which a packing can open new nodes, and the new nodes that it has opened in a world."""

from collections.abc import Iterable

from leeward.scheduling.nodes import NodeTemplate, Offering
from leeward.scheduling.pod_classes import Kind


class FreeSlot:
    """One offering of a template, in which new nodes can be opened.

    `numbers`: numbers of its nodes in the world, which later trials use again. `mask`: the same nodes as bits. `never`:
    kinds of pods that do not fit even on an empty node of it.
    """

    __slots__ = ("at", "mask", "never", "numbers", "template")

    def __init__(self, template: NodeTemplate, at: int) -> None:
        self.template, self.at = template, at
        self.numbers: list[int] = []
        self.mask = 0
        self.never: set[Kind] = set()

    @property
    def offering(self) -> Offering:
        """Offering of the slot."""
        return self.template.offerings[self.at]

    @property
    def rank(self) -> tuple[float, str, int]:
        """Sort key, the cheapest first; the name makes the order independent of that of the templates."""
        return self.offering.price, self.template.name, self.at


class FreeSlots:
    """Free slots of one world. `ranked`: all of them by rank.

    Templates are compared by identity: callers pass the same objects each time.
    """

    __slots__ = ("_known", "ranked")

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], FreeSlot] = {}
        self.ranked: list[FreeSlot] = []

    def of(self, templates: Iterable[NodeTemplate]) -> list[FreeSlot]:
        """Return the slots of the templates, one for each offering, in their order."""
        return [self._of(template, at) for template in templates for at in range(len(template.offerings))]

    def _of(self, template: NodeTemplate, at: int) -> FreeSlot:
        slot = self._known.get((id(template), at))
        if slot is None:
            slot = self._known[id(template), at] = FreeSlot(template, at)
            self.ranked = sorted((*self.ranked, slot), key=lambda slot: slot.rank)
        return slot
