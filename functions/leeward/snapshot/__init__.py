"""What pure decisions about a whole cluster look at: one moment of it, gathered once, joined once."""
