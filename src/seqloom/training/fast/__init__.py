"""Faster training: CUDA graphs, and the choice of training loop, batch layout and precision."""
