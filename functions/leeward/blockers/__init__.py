"""Who blocks a node, and until when: all that holds up its drain, its disruption or its end, each with a way out.

Decides nothing about a node; it tells what the rooms that decide would run into."""
