"""The main job, watched live: interruptions of every kind meet a deployed Leeward on the local stack."""
