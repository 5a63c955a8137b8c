"""Training with several processes (ranks).

The modules check that all ranks have the same settings, add up the gradients of the ranks, shard
the model, and report failures of ranks.
"""
