"""Next node of a group, for groups that have none: labels, taints, capacity, as a Node object.

Decides from the data of Auto Scaling, EC2 and EKS; not which type or zone a launch will really get."""
