"""Bills of materials in CycloneDX 1.6: what is in the Lambda asset, and what builds and tests it: `make sbom`.

Written from the locks, so that every package carries the hashes that pip and npm accept. The same locks and the same
asset make the same document but for its time: the serial number follows from the content.
"""

import base64
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.dependency import Dependency
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from infra.asset import build_asset
from leeward import __version__
from supply_chain.licences import licence_of, npm_packages
from supply_chain.locks import ASSET, BOOTSTRAP, DEVELOPMENT, Pin, read_input, read_lock

FOLDER = Path("build/sbom")
_LICENCES = LicenseFactory()


class InvalidBillError(ValueError):
    """Document that CycloneDX's own schema refuses."""


def asset_bill(root: Path, now: datetime) -> str:
    """Return the bill of the asset, which it builds if need be. Its digest is a property of the root component."""
    digest = build_asset(root).digest
    leeward = _leeward("leeward-asset")
    leeward.properties.add(Property(name="leeward:asset:digest", value=digest))
    return _document(leeward, _python(read_lock(root / ASSET)), _direct(root, ASSET), now)


def development_bill(root: Path, now: datetime) -> str:
    """Return the bill of what develops, tests and synthesizes: Python's packages and npm's."""
    pins = (*read_lock(root / DEVELOPMENT), *read_lock(root / BOOTSTRAP))
    parts = {**_python(pins), **dict(_npm(root))}
    return _document(_leeward("leeward-development"), parts, _direct(root, DEVELOPMENT, BOOTSTRAP), now)


def _direct(root: Path, *locks: str) -> set[str]:
    """Return the names in the inputs of these locks."""
    inputs = (root / f"{lock.removesuffix('.txt')}.in" for lock in locks)
    return {canonicalize_name(requirement.name) for path in inputs for requirement in read_input(path)}


def check(document: str) -> None:
    """Validate against the schema of CycloneDX 1.6, unknown keys included. Raises InvalidBillError."""
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(document)
    if error:
        raise InvalidBillError(str(error))


def _leeward(name: str) -> Component:
    licence = _LICENCES.make_from_string("Apache-2.0")
    return Component(type=ComponentType.APPLICATION, name=name, version=__version__, licenses=[licence], bom_ref=name)


def _python(pins: Sequence[Pin]) -> dict[str, tuple[Component, frozenset[str]]]:
    """Return reference -> component and the references of what it needs. A package may have two versions, each for its
    own platforms.
    """
    references: dict[str, list[str]] = {}
    for pin in pins:
        references.setdefault(pin.name, []).append(f"{pin.name}@{pin.version}")
    found = {}
    for pin in pins:
        needed = {reference for name in _needs(pin) for reference in references.get(name, [])}
        found[f"{pin.name}@{pin.version}"] = (_of_pin(pin), frozenset(needed))
    return found


def _of_pin(pin: Pin) -> Component:
    """Return the component of a pin. Its hashes are of the files of one release, so they stand at a reference to it."""
    url = PackageURL("pypi", None, pin.name, pin.version)
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(url.to_string()),
        comment="every file of the release that may be installed",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in pin.hashes],
    )
    return Component(
        type=ComponentType.LIBRARY,
        name=pin.name,
        version=pin.version,
        purl=url,
        bom_ref=f"{pin.name}@{pin.version}",
        licenses=[_LICENCES.make_from_string(licence_of(pin.name))],
        external_references=[files],
    )


def _needs(pin: Pin) -> Iterator[str]:
    """Return the names that the installed package declares, whatever extra brings them along."""
    try:
        declared = metadata.requires(pin.name) or ()
    except metadata.PackageNotFoundError:  # of another platform
        return
    yield from (canonicalize_name(Requirement(line).name) for line in declared)


def _npm(root: Path) -> Iterator[tuple[str, tuple[Component, frozenset[str]]]]:
    """Return npm's packages, without edges between them: all are below the two that `package.json` names."""
    locked: Mapping[str, Mapping[str, str]] = json.loads((root / "package-lock.json").read_text())["packages"]
    integrity = {path.rpartition("node_modules/")[2]: entry.get("integrity", "") for path, entry in locked.items()}
    for package in npm_packages(root):
        group, _, name = package.name.rpartition("/")
        algorithm, _, value = integrity[package.name].partition("-")
        if algorithm != "sha512":
            raise InvalidBillError(f"package-lock.json: found {package.name} without a sha512, expected one")
        reference = f"npm:{package.name}@{package.version}"
        component = Component(
            type=ComponentType.LIBRARY,
            name=name,
            group=group or None,
            version=package.version,
            purl=PackageURL("npm", group or None, name, package.version),
            bom_ref=reference,
            licenses=[_LICENCES.make_from_string(package.licence)],
            hashes=[HashType(alg=HashAlgorithm.SHA_512, content=base64.b64decode(value).hex())],
        )
        yield reference, (component, frozenset())


def _document(
    root: Component, parts: Mapping[str, tuple[Component, Iterable[str]]], direct: set[str], now: datetime
) -> str:
    """Return the validated JSON document of a root and its parts; `direct`: names of those that an input asks for."""
    bom = Bom(components=[component for component, _ in parts.values()])
    bom.metadata.component = root
    bom.metadata.timestamp = now
    references = {reference: component.bom_ref for reference, (component, _) in parts.items()}
    for reference, (_, needed) in parts.items():
        edges = [Dependency(ref=references[each]) for each in sorted(needed)]
        bom.dependencies.add(Dependency(ref=references[reference], dependencies=edges))
    inner = {each for _, needed in parts.values() for each in needed}
    top = [reference for reference, (part, _) in parts.items() if part.name in direct or reference not in inner]
    bom.dependencies.add(Dependency(ref=root.bom_ref, dependencies=[Dependency(ref=references[each]) for each in top]))
    rendered = json.loads(JsonV1Dot6(bom).output_as_string())
    content = json.dumps([rendered["components"], rendered["metadata"]["component"]], sort_keys=True)
    bom.serial_number = uuid5(NAMESPACE_URL, content)
    document = str(JsonV1Dot6(bom).output_as_string(indent=2))
    check(document)
    return document


def main() -> int:
    """Write both bills."""
    root, now = Path.cwd(), datetime.now(UTC)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, bill in (("asset", asset_bill), ("development", development_bill)):
        path = FOLDER / f"{name}.cdx.json"
        path.write_text(bill(root, now), encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
