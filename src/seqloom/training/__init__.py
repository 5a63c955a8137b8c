"""Training: the loop, one optimiser step, evaluation, checkpoints and exact resumption."""
