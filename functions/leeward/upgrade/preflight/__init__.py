"""Pre-flight of an upgrade: its inputs, the checks, and the plan."""
