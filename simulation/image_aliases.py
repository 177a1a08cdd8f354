"""Images behind SSM parameters: launch templates that name a parameter (`resolve:ssm:…`), parameters whose image
changes, and a role that for some minutes may not read them.

EC2 resolves the parameter at each launch, whether or not Leeward may read it. Source: Amazon EC2 user guide, "Create a
launch template that uses a Systems Manager parameter instead of an AMI ID"."""

from random import Random

from simulation.aws.compute import SimGroup
from simulation.aws.templates import ALIAS, FIRST_IMAGE, SimTemplates
from simulation.scene import Scene

OWN, NEXT = "/golden/{group}", "/golden/{group}/next"  # a group's parameter, and one that upgrades name
VERSION = "1.33"
_EKS = "/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{arch}/standard/recommended/image_id"
PUBLIC = {
    "amd64": _EKS.format(version=VERSION, arch="x86_64"),
    "arm64": _EKS.format(version=VERSION, arch="arm64"),
}
SHARE = 0.6  # share of the groups whose template names a parameter
PUBLIC_SHARE = 0.4  # share of the changes that concern the public parameters of EKS, which upgrades name
MOVES_EVERY, DENIED_EVERY, DENIED_FOR = 710.0, 1490.0, (60.0, 900.0)  # seconds; the last: shortest and longest
NEWER = 1000  # number of the first image that a parameter changes to


class ImageAliases:
    """Parameters of one world. `begin` is called before it runs, `move` and `deny` at intervals while it runs."""

    def __init__(self, scene: Scene, random: Random, first: int = NEWER) -> None:
        self._scene, self._random, self._number = scene, random, first

    @property
    def _templates(self) -> SimTemplates:
        return self._scene.system.templates

    def begin(self) -> None:
        """Make the first template version of some groups, at least one, name a parameter instead of an image."""
        parameters = self._templates.parameters
        parameters.update(dict.fromkeys(PUBLIC.values(), FIRST_IMAGE))
        groups = list(self._scene.fleet.groups.values())
        chosen = [group for group in groups if self._random.random() < SHARE] or [self._random.choice(groups)]
        for group in chosen:
            own, following = OWN.format(group=group.name), NEXT.format(group=group.name)
            parameters.update({own: FIRST_IMAGE, following: f"ami-{NEWER - 1:017d}"})
            group.template.parameters, group.template.images[0] = parameters, ALIAS + own

    def move(self) -> None:
        """Publish a newer image under one of the parameters."""
        parameters = self._templates.parameters
        candidates = PUBLIC.values() if self._random.random() < PUBLIC_SHARE else sorted(parameters)
        parameter, image = self._random.choice(list(candidates)), f"ami-{self._number:017d}"
        self._number += 1
        self._scene.say(f"SSM parameter {parameter} names {image} now")
        parameters[parameter] = image

    def move_own(self) -> None:
        """Publish a newer image under the parameter that a group launches from now, if there is such a group."""
        groups = [group for group in self._scene.fleet.groups.values() if self._named(group)]
        if groups:
            parameter, image = self._named(self._random.choice(groups)), f"ami-{self._number:017d}"
            self._number += 1
            self._scene.say(f"SSM parameter {parameter} names {image} now")
            self._templates.parameters[parameter] = image

    @staticmethod
    def _named(group: SimGroup) -> str:
        written = group.template.written(group.version)
        return written.removeprefix(ALIAS) if written.startswith(ALIAS) else ""

    def deny(self) -> None:
        """Deny our role reading the parameters for one to fifteen minutes; while it is denied, do nothing."""
        templates = self._templates
        if not templates.readable:
            return
        self._scene.say("our role may not read SSM parameters")
        templates.readable = False

        def allow() -> None:
            templates.readable = True

        self._scene.timeline.after(self._random.uniform(*DENIED_FOR), allow, "parameters may be read")
