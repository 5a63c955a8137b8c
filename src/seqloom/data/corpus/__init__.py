"""Datasets: examples as token ids, pixels or numbers.

Token ids and pixels are cached on disk and memory-mapped. Numbers are kept in memory.
"""
