"""Leeward: event-driven, serverless node-lifecycle manager for Amazon EKS."""

__version__ = "0.1.0"
