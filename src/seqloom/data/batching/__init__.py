"""Batching: which examples form a batch, and how a batch is assembled."""
