"""`make release`: the package of a commit and a statement for a signer, in `build/release/` (see `releasing.md` here).

The statement has no time, host or path, so two builders of a commit write the same bytes. It is not signed here.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from leeward import __version__
from supply_chain.locks import ASSET, BOOTSTRAP, DEVELOPMENT
from supply_chain.package import SUMS, digest, write_package, write_sums

FOLDER = Path("build/release")
STATEMENT = f"leeward-{__version__}.intoto.json"
_INPUTS = (ASSET, BOOTSTRAP, DEVELOPMENT, "package-lock.json")


class ReleaseError(Exception):
    """Tree or build of which no release can be made."""


def main(root: Path | None = None, folder: Path = FOLDER) -> int:
    """Write and check the release. Exit code 1 where its tree is not a commit or its asset lacks bytecode."""
    root = root or Path.cwd()
    try:
        commit = clean_commit(root)
        if not write_package(root, folder):
            raise ReleaseError("the asset has no bytecode: install a Python of the functions' runtime")
    except ReleaseError as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    (folder / STATEMENT).write_text(json.dumps(statement(root, folder, commit), indent=1) + "\n", encoding="utf-8")
    write_sums(folder)
    for path in sorted(folder.iterdir()):
        print(digest(path), path)
    return 0


def clean_commit(root: Path) -> str:
    """Return the commit of the tree. Raises ReleaseError for files that it does not have."""
    changed = _git(root, "status", "--porcelain")
    if changed:
        raise ReleaseError(f"the tree differs from its commit: {changed.splitlines()[0].strip()}")
    return _git(root, "rev-parse", "HEAD")


def statement(root: Path, folder: Path, commit: str) -> dict[str, Any]:
    """Return an in-toto statement with SLSA provenance whose subjects are the files, but for sums and statement."""
    files = [path for path in sorted(folder.iterdir()) if path.name not in {SUMS, STATEMENT}]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [_described(path.name, path) for path in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:leeward:make-release:v1",
                "externalParameters": {"target": "release", "version": __version__},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": commit}},
                    *(_described(name, root / name) for name in _INPUTS),
                ],
            },
            "runDetails": {"builder": {"id": "urn:leeward:make-release"}},
        },
    }


def _described(name: str, path: Path) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest(path)}}


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git answers: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
