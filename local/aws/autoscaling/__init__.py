"""What moto's Auto Scaling lacks: zone balance, lifecycle hooks, LaunchInstances, health checks, activities.

``shape`` says what a group may launch, ``waits`` what its hooks hold, ``engine`` moves instances through their states,
``api`` answers the calls.
"""
