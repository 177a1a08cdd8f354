"""`leeward zone`: arguments, the record of the zones, and rendering."""
