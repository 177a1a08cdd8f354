"""Which nodes are not what their group would launch now, field by field, and what would put that right."""
