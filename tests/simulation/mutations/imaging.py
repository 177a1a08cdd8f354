"""Broken builds: images behind SSM parameters that move, and that cannot always be read."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from simulation.features import Feature
from simulation.rule import Rule
from tests.simulation.mutations.build import Mutation, Workshop, with_features
from tests.simulation.mutations.editing import edit, edited

DRIFTING = with_features(Feature.ALIASES, hours=1, per_hour=10, disruption=True)
ASKED = with_features(Feature.ALIASES, Feature.NO_FAULTS, hours=2, per_hour=10, upgrades=12)

AUTOMATIC = with_features(Feature.AUTOMATIC, Feature.NO_FAULTS, hours=2, per_hour=5, upgrades=0.5, disruption=True)


def _kept(method: str) -> Callable[[Workshop], None]:
    """The first answer to each question is kept for good, by each of the simulation's adapters."""
    path, _, name = method.rpartition(".")
    module, _, kind = path.rpartition(".")
    sound = getattr(getattr(import_module(module), kind), name)

    def breaks(shop: Workshop) -> None:
        def kept(self: Any, asked: Any) -> Any:
            answers = self.__dict__.setdefault("kept", {})
            key = getattr(asked, "launch", asked)
            if key not in answers:
                answers[key] = sound(self, asked)
            return answers[key]

        shop.method(method, kept)

    return breaks


OF_ALIASES = (
    Mutation(
        name="an image whose parameter cannot be read counts as another",
        story="compares the image as the template names it",
        breaks=edited(
            edit(
                "leeward.drift.differences.of_instance",
                'if launch.image.startswith("ami-") and instance.image and',
                "if launch.image and instance.image and",
            )
        ),
        rules=frozenset({Rule.DRIFT}),
        scenario=DRIFTING,
    ),
    Mutation(
        name="launch templates are read once",
        story="knows that a version of a launch template never changes",
        breaks=_kept("simulation.aws.network.SimLaunchSources.settings"),
        rules=frozenset({Rule.DRIFT, Rule.DRIFT_SEEN}),
        scenario=DRIFTING,
    ),
    Mutation(
        name="a parameter is read once",
        story="keeps the images of parameters, which rarely move",
        breaks=_kept("simulation.aws.templates.SimTemplates.image_behind"),
        rules=frozenset({Rule.PARAMETER}),
        scenario=ASKED,
    ),
    Mutation(
        name="an automatic upgrade starts outside of its window",
        story="compares since when the image is known and not the time of the day",
        breaks=edited(
            edit(
                "leeward.upgrade.automatic.reason_to_wait",
                "not is_open(windows, freeze, snapshot.now)",
                "False",
            )
        ),
        rules=frozenset({Rule.AUTOMATIC}),
        scenario=AUTOMATIC,
    ),
)
