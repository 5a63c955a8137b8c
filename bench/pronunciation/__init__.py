"""Grapheme-to-phoneme conversion in the 15 languages of SIGMORPHON 2020: `python -m bench.pronunciation`."""
