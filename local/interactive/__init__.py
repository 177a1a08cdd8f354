"""Local stack that keeps running for a person (`make local`), and the events that another terminal plays on it."""
