"""`leeward drain`: arguments, inputs, live requests and rendering."""
