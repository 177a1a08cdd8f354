"""Running the command line in process: `leeward("drain", "node-a", …)` gives exit code, output and errors."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from leeward.cli.main import main

SMALL = Path("tests/cli/snapshots/small")
NOON = "2024-05-01T12:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Command:
    """`capsys` collects what is printed."""

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, *arguments):
        code = main([str(argument) for argument in arguments])
        printed = self.capsys.readouterr()
        return Result(code=code, out=printed.out, err=printed.err)

    def refuses(self, *arguments):
        """Bad input: exit 2, nothing on stdout, one message on stderr, which is returned."""
        result = self(*arguments)
        assert (result.code, result.out) == (2, "")
        assert "Traceback" not in result.err
        assert "usage:" not in result.err
        assert result.err.startswith("leeward: ")
        return result.err.removeprefix("leeward: ").rstrip("\n")


def a_snapshot(directory, **files):
    """A copy of the small snapshot; `nodes="text"` replaces nodes.json, None removes it, `policy=` is policy.yaml."""
    shutil.copytree(SMALL, directory, dirs_exist_ok=True)
    for name, content in files.items():
        path = directory / ("policy.yaml" if name == "policy" else f"{name.replace('_', '-')}.json")
        if content is None:
            path.unlink()
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
    return directory
