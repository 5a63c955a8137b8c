"""Errors, batches, model signatures and atomic storage, which the other packages use."""
