"""Where a new node may land: zones, subnets, and the IPv4 addresses that it will take there."""
