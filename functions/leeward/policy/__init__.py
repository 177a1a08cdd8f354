"""The NodePolicy document: its shape and defaults, its validation, and which policy a group falls under.

Pure: it gets parsed JSON. Reading YAML belongs to the command line and to synth, reading SSM to the adapters."""
