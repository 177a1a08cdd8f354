"""Drawing of a run as one HTML page: the phases of each node and each workload, and the decisions of that time.

Decides how a run record looks, never what happened; the record comes from a simulation, the local stack or an
execution's history. It stays out of the Lambda asset."""
