"""Upgrades of managed node groups, which EKS rolls: target, start and observation of its update."""
