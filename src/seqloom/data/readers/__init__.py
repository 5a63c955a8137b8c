"""Readers: convert data files to examples. There is one module per file format."""
