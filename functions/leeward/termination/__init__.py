"""The shared end of every path that removes a node: replace, drain, settle, terminate, answer hooks.

`drain.py`, `ledger.py` and `verdict.py` decide, `steps.py`, `replacing.py`, `draining.py` and `sweep.py` do it through
ports, `state_machine.asl.yaml` puts the steps in their order."""
