"""Draws a run as one HTML page: what each node and each workload went through, and what was decided meanwhile.

It decides how a run record looks, never what happened; the record comes from a simulation, the local stack or an
execution's history. It stays out of the Lambda asset."""
