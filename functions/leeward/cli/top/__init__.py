"""`leeward top`: the nodes of a cluster with price, use, state and blocker, once or refreshed on a terminal."""
