"""Copies the event log of a run to experiment trackers."""
