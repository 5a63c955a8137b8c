"""Readers: data files to examples, one module per format."""
