"""Launch templates: each group of a fleet has one of its own, with versions that differ in their image.

A version may be bad: instances launched from it boot and never join the cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from leeward.errors import AccessDeniedError, InvalidInputError, ObjectGoneError
from leeward.model.instance import LaunchAttributes
from leeward.model.launch import LaunchTemplateRef
from simulation.faults import Injector

ALIAS = "resolve:ssm:"
FIRST_IMAGE = "ami-00000000000000001"
LATEST, DEFAULT = "$Latest", "$Default"
PROPAGATED: Mapping[str, str] = {"team": "of-the-group"}  # of every group, over the tag of its template
LAUNCH_DATA: Mapping[str, Any] = {
    "TagSpecifications": [
        {"ResourceType": "volume", "Tags": [{"Key": "team", "Value": "disks"}]},
        {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in (("Name", "web"), ("team", "any"))]},
    ],
    "NetworkInterfaces": [
        {"DeviceIndex": 1, "NetworkCardIndex": 1, "InterfaceType": "efa", "Groups": ["sg-node", "sg-efa"]},
        {"DeviceIndex": 0, "NetworkCardIndex": 0, "Groups": ["sg-node"]},
    ],
    "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
}  # of every version
WANTED = LaunchAttributes.of_template(LAUNCH_DATA)


@dataclass(slots=True, kw_only=True)
class SimTemplate:
    """One launch template. `images` by version, the first is the default, each an image or the SSM parameter that names
    one; a version never changes. `bad`: versions whose instances never join. `parameters`: SSM's, which change.
    """

    id: str
    name: str
    images: list[str] = field(default_factory=lambda: [FIRST_IMAGE])
    bad: set[str] = field(default_factory=set)
    by_token: dict[str, tuple[str, str]] = field(default_factory=dict)  # client token -> version, what it is made of
    parameters: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)  # versions that were deleted
    absent: bool = False  # it was deleted as a whole, and is not made again yet

    def ref(self, version: str = "1") -> LaunchTemplateRef:
        """Return a reference to one of its versions."""
        return LaunchTemplateRef(id=self.id, name=self.name, version=version)

    def number(self, version: str) -> str:
        """Resolve `$Latest` and `$Default` to a number. Raises ObjectGoneError for a version that does not exist."""
        number = self._number(version)
        if self.lacks(number):
            raise ObjectGoneError(f"InvalidLaunchTemplateId.VersionNotFound: {self.id} version {version}")
        return number

    def lacks(self, version: str) -> bool:
        """Return whether the version, or the template with it, was deleted."""
        return self.absent or version in self.gone

    def image(self, version: str) -> str:
        """Return the image that an instance launched now would have. Raises ObjectGoneError."""
        written = self.written(version)
        return self.parameters[written.removeprefix(ALIAS)] if written.startswith(ALIAS) else written

    def written(self, version: str) -> str:
        """Return the image as the version names it. Raises ObjectGoneError."""
        return self.images[int(self._number(version)) - 1]

    def _number(self, version: str) -> str:
        number = str(len(self.images)) if version == LATEST else "1" if version == DEFAULT else version
        if not (number.isdigit() and 1 <= int(number) <= len(self.images)):
            raise ObjectGoneError(f"InvalidLaunchTemplateId.VersionNotFound: {self.id} version {version}")
        return number

    def add(self, image: str, token: str = "", source: str = "") -> str:
        """Run CreateLaunchTemplateVersion and return its number; the same token gives the same one, also after it was
        deleted. Raises InvalidInputError for a token of another request.
        """
        asked = f"{image} from version {source}"
        if token and token in self.by_token:
            made, before = self.by_token[token]
            if before != asked:
                raise InvalidInputError(f"IdempotentParameterMismatch: {token} was of {before}, found {asked}")
            return made
        self.images.append(image)
        made = str(len(self.images))
        if token:
            self.by_token[token] = made, asked
        return made


def template_of(group: str) -> SimTemplate:
    """Return the template that a group is created with."""
    return SimTemplate(id=f"lt-{group}", name=group)


@lru_cache(maxsize=8)
def launched_look(renamed: str = "") -> LaunchAttributes:
    """Return what DescribeInstances shows of a launch from any version: the group's tags over the template's, the
    security groups of the primary interface, and one that another owner adds. `renamed`: by its boot script.
    """
    tags = {**PROPAGATED, "Name": renamed or "web"}
    raw = {
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "SecurityGroups": [{"GroupId": "sg-node"}, {"GroupId": "sg-of-the-account"}],
        "MetadataOptions": {"State": "applied", **LAUNCH_DATA["MetadataOptions"], "HttpEndpoint": "enabled"},
    }
    return LaunchAttributes.of_instance(raw)


class SimTemplates:
    """`ports.compute.Templates`. `parameters`: SSM's, and whether our role may read them; `missing`: images that EC2
    does not have.
    """

    def __init__(self, templates: Iterable[SimTemplate], injector: Injector | None = None) -> None:
        self._by_name: dict[str, SimTemplate] = {}
        for one in templates:
            self._by_name[one.id] = self._by_name[one.name] = one
        self._injector = injector
        self.parameters: dict[str, str] = {}
        self.readable = True
        self.missing: set[str] = set()

    def version_for(
        self, template: LaunchTemplateRef, image: str, *, token: str, again: bool = False
    ) -> LaunchTemplateRef:
        """Return a version with the image: the version itself where it has the image already, unless `again`. A new one
        is bad by chance.
        """
        known = self._known(template)
        source = known.number(template.version)
        if known.written(source) == image and not again:
            return known.ref(source)
        there = len(known.images)
        made = known.add(image, token, source)
        if len(known.images) == there:
            return known.ref(made)
        gate = self._injector
        if gate is not None and gate.happens("bad image", gate.faults.bad_image, "templates"):
            known.bad.add(made)
        return known.ref(made)

    def know(self, template: SimTemplate) -> None:
        """Add a template that stands behind no group of the fleet by itself."""
        self._by_name[template.id] = self._by_name[template.name] = template

    def template(self, name: str) -> SimTemplate:
        """Return the template of that id or name. Raises KeyError."""
        return self._by_name[name]

    def numbered(self, template: LaunchTemplateRef) -> LaunchTemplateRef:
        """Return the reference with number and id."""
        known = self._known(template)
        return known.ref(known.number(template.version))

    def image_behind(self, parameter: str) -> str:
        """Return the image that the parameter names now. Raises ObjectGoneError, AccessDeniedError."""
        if not self.readable:
            raise AccessDeniedError(f"ssm:GetParameter on {parameter}: AccessDeniedException")
        if parameter not in self.parameters:
            raise ObjectGoneError(f"ParameterNotFound: {parameter}")
        return self.parameters[parameter]

    def image_exists(self, image: str) -> bool:
        """Return true for all images but the missing."""
        return image not in self.missing

    def _known(self, template: LaunchTemplateRef) -> SimTemplate:
        found = self._by_name.get(template.id or template.name)
        if found is None or found.absent:
            raise ObjectGoneError(f"InvalidLaunchTemplateId.NotFound: {template.label}")
        return found
