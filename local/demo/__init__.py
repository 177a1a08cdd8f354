"""Demo of the main job, watched live: a deployed Leeward on the local stack handles interruptions of every kind."""
