"""Speed on a GPU: training, decoding, translating a file, and data-parallel code."""
