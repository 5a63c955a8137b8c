"""Encoders and decoders, assembled from the parts in `nn`."""
