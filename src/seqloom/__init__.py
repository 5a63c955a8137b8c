"""seqloom learns to map sequences to sequences: train, look inside, evaluate, serve."""

__version__ = "0.1.0"
