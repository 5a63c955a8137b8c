"""Ablations of training and decoding techniques: `python -m bench.tricks`."""
