"""Faster training: CUDA graphs, and the choice of loop, batch layout and precision."""
