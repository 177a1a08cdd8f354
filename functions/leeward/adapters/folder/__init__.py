"""Snapshot folder behind the ports: raw `kubectl` and `aws` output instead of the APIs.

The command line and synth alone import this package. No function has it: it reads YAML, and files that people made."""
