"""In-memory ports, faithful to the docstrings of `leeward.ports`: the rooms run on them without AWS or Kubernetes."""
