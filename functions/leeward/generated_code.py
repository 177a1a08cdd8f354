"""Methods that `dataclasses` generates, compiled once with the asset.

Each dataclass writes the text of its methods and compiles it when its module is imported: with two hundred classes that
is a third of a cold start, and bytecode files do not hold it. The asset has one file with the code of each text, by the
text's digest. A text that is not in it is compiled as ever, so that an interpreter that writes other texts only starts
more slowly.
"""

import dataclasses
import marshal
from collections.abc import Callable, Mapping
from hashlib import blake2b
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("generated_code.bin")
Code = Mapping[bytes, bytes]


def use(file: Path = FILE) -> None:
    """Let `dataclasses` take the code from the file; without one, or with that of another Python, nothing changes."""
    try:
        raw = file.read_bytes()
    except OSError:
        return
    if raw.startswith(MAGIC_NUMBER):
        setattr(dataclasses, "exec", _running(marshal.loads(raw[len(MAGIC_NUMBER) :])))  # noqa: B010 - as below


def _running(known: Code) -> Callable[..., None]:
    """Return an `exec` that takes the code of known texts from there."""

    def run(text: str, *namespaces: dict[str, Any]) -> None:
        code = known.get(_digest(text))
        exec(text if code is None else marshal.loads(code), *namespaces)

    return run


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def record() -> dict[bytes, bytes]:
    """Return a mapping to which every dataclass that is made from now on adds its code by its text's digest."""
    found: dict[bytes, bytes] = {}

    def run(text: str, *namespaces: dict[str, Any]) -> None:
        code = compile(text, "<string>", "exec")
        found[_digest(text)] = marshal.dumps(code)
        exec(code, *namespaces)

    setattr(dataclasses, "exec", run)  # noqa: B010 - a name that `dataclasses` finds before the built-in one
    return found


def write(found: Code, file: Path = FILE) -> None:
    """Write what `record` has gathered, for this Python."""
    file.write_bytes(MAGIC_NUMBER + marshal.dumps(dict(sorted(found.items()))))
