"""A deployed stack of this folder's own, and the `leeward` command, live against it with the caller's credentials."""

from tests.local.chain.deployed import folder, leeward, network, stack, webhook

__all__ = ["folder", "leeward", "network", "stack", "webhook"]
