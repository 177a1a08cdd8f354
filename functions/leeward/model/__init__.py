"""Types that every package shares: frozen dataclasses without I/O, with parsers for raw AWS or Kubernetes JSON."""
