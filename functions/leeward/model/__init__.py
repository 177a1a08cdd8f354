"""The nouns every room shares: frozen dataclasses without I/O, each with its parser for raw AWS or Kubernetes JSON."""
