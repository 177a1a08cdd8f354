"""Placement of a new node: zones, subnets, and the IPv4 addresses that it will take there."""
