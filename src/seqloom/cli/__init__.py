"""Talks to people: the only place that prints or exits."""
