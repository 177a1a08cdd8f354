"""Minute reconciler: finishes work that no Catch can finish, and reads state for which no event is sent."""
