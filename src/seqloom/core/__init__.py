"""Errors, batches, signatures and atomic storage: what every other package builds on."""
