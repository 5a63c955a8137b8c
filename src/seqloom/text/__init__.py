"""Strings to ids and back. No torch."""
