"""Last part of every path that removes a node: replace, drain, settle, terminate, answer hooks.

`drain_plan.py`, `decisions.py`, `capacity_ledger.py` and `deadlines.py` decide. `steps.py`, `replacing.py`,
`drain.py` and `reconciler.py` act through ports. `state_machine.asl.yaml` orders the steps."""
