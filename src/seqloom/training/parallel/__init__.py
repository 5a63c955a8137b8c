"""Training on several ranks: equal settings, summed gradients, sharded models, failures."""
