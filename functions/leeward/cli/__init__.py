"""`leeward` command: live against a cluster, or offline on a folder of raw tool output.

The only package beside synth that reads YAML and draws tables; it is not part of the Lambda asset."""
