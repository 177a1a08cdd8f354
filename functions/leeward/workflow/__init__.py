"""Parts that the three workflows share: termination, disruption and upgrade each add their steps and their record."""
