"""Sweeps: training runs of one recipe with different settings."""
