"""What the next node of a group would be, when the group has none: labels, taints, capacity, as a Node object.

Decides from what Auto Scaling, EC2 and EKS say; not which type or zone a launch will really get."""
