"""`make package`: what an installation without a clone needs, in `build/package/` (docs/install.md).

The same commit, with the same Python for the asset's bytecode, makes the same files byte by byte: their times are that
of the commit (or of SOURCE_DATE_EPOCH), and no archive is compressed, since zlib's releases differ.
"""

import json
import os
import shutil
import sys
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from infra.asset import build_asset
from infra.package.synthesis import synthesizer
from infra.package.template import LARGEST, packaged_template
from infra.program import NOT_COMPILED
from leeward import __version__
from supply_chain.bill_of_materials import asset_bill
from supply_chain.progress import announced
from supply_chain.wheel import EARLIEST, READABLE, commit_time, write_lock, write_wheel

FOLDER = Path("build/package")
SUMS = "SHA256SUMS"
_NAMED = 12  # digits of the digest in the asset's name


def main(root: Path | None = None, folder: Path = FOLDER) -> int:
    """Write the package and print its files."""
    write_package(root or Path.cwd(), folder)
    for path in sorted(folder.iterdir()):
        print(path)
    return 0


def write_package(root: Path, folder: Path) -> bool:
    """Write the package of the tree at `root`, and return whether its asset is compiled for the functions' runtime."""
    when = commit_time(root, os.environ)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with announced("1/4 Lambda asset"):
        asset = build_asset(root)
        archive = write_archive(asset.folder, folder)
    if not asset.compiled:
        print(NOT_COMPILED, file=sys.stderr)
    with announced("2/4 template"):
        template = packaged_template(synthesizer(root, asset), asset=archive.name)
        Path(folder, f"leeward-{__version__}.template.json").write_text(written(template), encoding="utf-8")
    with announced("3/4 bill of materials"):
        Path(folder, f"leeward-{__version__}.cdx.json").write_text(asset_bill(root, when), encoding="utf-8")
    with announced("4/4 wheel and its lock"):
        write_wheel(root, folder, when)
        write_lock(root, folder)
    for manifest in (root / "manifests").glob("*.yaml"):
        shutil.copyfile(manifest, folder / manifest.name)
    write_sums(folder)
    return asset.compiled


def write_archive(source: Path, folder: Path) -> Path:
    """Write the asset's archive, named after version and content, and return its path. CloudFormation updates a
    function only where the key of its code changes, so another content needs another name.
    """
    fresh = folder / "asset.zip"
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(source.rglob("*"), key=lambda path: path.relative_to(source).as_posix()):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(source).as_posix(), EARLIEST)
                entry.external_attr = READABLE  # Lambda reads the files as another user
                entry.create_system = 3  # Unix, on every machine
                archive.writestr(entry, path.read_bytes())
    return fresh.rename(folder / f"leeward-{__version__}-{digest(fresh)[:_NAMED]}.zip")


def written(template: Mapping[str, Any]) -> str:
    """Return the template's text: one line for each resource, so that two versions can be compared, and no more
    characters than that. Raises ValueError over CloudFormation's limit.
    """
    lines = [_entries(name, section) for name, section in template.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if len(text.encode()) > LARGEST:
        raise ValueError(f"the template has {len(text.encode())} bytes, CloudFormation takes {LARGEST}")
    return text


def write_sums(folder: Path) -> None:
    """Write the digest of every file as `sha256sum --check` reads it."""
    lines = [f"{digest(path)}  {path.name}\n" for path in sorted(folder.iterdir()) if path.name != SUMS]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def _entries(name: str, section: Any) -> str:
    if not isinstance(section, Mapping):
        return f"{json.dumps(name)}: {json.dumps(section)}"
    lines = [f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in section.items()]
    return f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    return sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
