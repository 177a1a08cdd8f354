"""Leeward: event-driven, serverless node-lifecycle manager for Amazon EKS."""

from leeward import generated_code

__version__ = "0.1.0"
generated_code.use()  # before the first dataclass
