"""Training on several ranks: gradients, sharded models, shared evaluation, failures."""
