"""A deployed stack of this folder's own."""

from tests.local.chain.deployed import folder, network, stack, webhook

__all__ = ["folder", "network", "stack", "webhook"]
