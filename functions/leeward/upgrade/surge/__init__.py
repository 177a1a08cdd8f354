"""New nodes launched ahead of the drains: how many, where, and the orders for them."""
