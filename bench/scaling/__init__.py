"""Memory and time as a function of corpus size, output length, beam width and source length."""

from bench.scaling.table import table

__all__ = ["table"]
