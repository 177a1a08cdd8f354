"""`python -m tests.local.package.keep FOLDER`: keep a package of an earlier commit, from which a stack is updated.

Of the package in FOLDER (`make package`) the template is kept, and of its asset the `leeward` package without bytecode;
the other packages of the asset are those of this tree's asset. Where the commit is older than `make package`, copy
`infra/package` and `supply_chain/package.py` over its tree first.
"""

import io
import json
import lzma
import sys
import tarfile
import zipfile
from pathlib import Path

from local.installation import Package

KEPT = Path(__file__).parent / "earlier"
TEMPLATE, CODE = KEPT / "template.json.xz", KEPT / "leeward.tar.xz"


def keep(package: Package) -> None:
    """Write both files, the same for the same package."""
    KEPT.mkdir(exist_ok=True)
    template = json.dumps(json.loads(package.template.read_text()), separators=(",", ":"))
    TEMPLATE.write_bytes(lzma.compress(template.encode(), preset=9 | lzma.PRESET_EXTREME))
    packed = io.BytesIO()
    with zipfile.ZipFile(package.asset) as asset, tarfile.open(fileobj=packed, mode="w") as code:
        for name in sorted(asset.namelist()):
            if name.startswith("leeward/") and "__pycache__" not in name:
                entry = tarfile.TarInfo(name)
                entry.size = asset.getinfo(name).file_size
                code.addfile(entry, io.BytesIO(asset.read(name)))
    CODE.write_bytes(lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def unpacked(folder: Path, present: Package) -> Package:
    """Write the kept package to a folder, with the packages of the present one, and return it."""
    template = json.loads(lzma.decompress(TEMPLATE.read_bytes()))
    path = folder / "earlier.template.json"
    path.write_text(json.dumps(template))
    asset = folder / template["Metadata"]["Leeward"]["Asset"]
    with (
        zipfile.ZipFile(present.asset) as others,
        tarfile.open(CODE) as code,
        zipfile.ZipFile(asset, "w") as archive,
    ):
        for name in others.namelist():
            if not name.startswith("leeward/"):
                archive.writestr(name, others.read(name))
        for entry in code:
            content = code.extractfile(entry)
            assert content is not None, entry.name
            archive.writestr(entry.name, content.read())
    return Package(template=path, asset=asset)


if __name__ == "__main__":
    keep(Package.in_folder(Path(sys.argv[1])))
