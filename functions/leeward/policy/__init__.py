"""NodePolicy document: its shape and defaults, its validation, and the selection of a group's policy.

Pure: it gets parsed JSON. Reading YAML belongs to the command line and to synth, reading SSM to the adapters."""
