"""Datasets: examples as token ids, pixels or numbers, memory-mapped and cached."""
