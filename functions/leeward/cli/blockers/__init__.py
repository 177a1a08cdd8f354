"""`leeward blockers`: arguments, inputs and rendering."""
