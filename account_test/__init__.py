"""`make account-test CLUSTER=name`: proves on a real account what the local stack cannot prove, and removes
what it made.

It runs the same way against the local stack (`--endpoint-url`), so that only AWS itself is unproven."""
