"""State of one cluster as every package reads it: policies, groups, nodes, instances and open terminations, joined."""
