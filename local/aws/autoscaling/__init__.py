"""Auto Scaling features that moto lacks: zone balance, lifecycle hooks, LaunchInstances, health checks, activities.

``shape`` decides the offerings that a group may launch, ``waits`` keeps the instances that its hooks hold, ``engine``
moves instances through their states, ``api`` answers the calls.
"""
