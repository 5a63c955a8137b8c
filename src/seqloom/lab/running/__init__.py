"""Runs the experiments of claims and caches their measurements."""
