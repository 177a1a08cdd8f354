"""The CDK app: `cdk synth`, `cdk deploy`. Settings come from the context, see docs/deploy.md."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT / "functions")]

from infra.program import build_app  # noqa: E402 - found through the line above
from leeward.errors import InvalidInputError  # noqa: E402


def main() -> int:
    """Synthesize; a mistake in the settings or a policy is one sentence and exit code 1."""
    try:
        build_app(ROOT, os.environ).synth()
    except InvalidInputError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
