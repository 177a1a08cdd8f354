"""`leeward upgrade`: arguments, requests to the deployment and rendering."""
