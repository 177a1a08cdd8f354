"""`make recordings`: write the recordings of the command line, or those that are named."""

import sys
from pathlib import Path

from recordings.pictures import SCENES, drawn

ASSETS = Path("docs/assets")


def main(names: list[str]) -> int:
    """Write docs/assets/NAME.svg. Return 2 for a name that is not known."""
    unknown = [name for name in names if name not in SCENES]
    if unknown:
        print(f"found {', '.join(unknown)}, expected some of {', '.join(SCENES)}", file=sys.stderr)
        return 2
    ASSETS.mkdir(exist_ok=True)
    for name in names or SCENES:
        text = drawn(name)
        (ASSETS / f"{name}.svg").write_text(text, encoding="utf-8")
        print(f"{ASSETS / name}.svg: {len(text.encode()) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
