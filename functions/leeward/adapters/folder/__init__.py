"""Snapshot folder behind the ports: raw `kubectl` and `aws` output instead of the APIs.

Only the command line and `cdk synth` import this package, no Lambda function: it reads YAML, and files that users have
edited."""
