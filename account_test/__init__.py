"""`make account-test CLUSTER=name`: prove on a real account what the local stack cannot prove, and remove everything
made for it.

It runs the same way against the local stack (`--endpoint-url`), so that only AWS itself is unproven.
"""
