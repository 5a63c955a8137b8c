"""What work costs as it grows: memory, time to the first step, decoding, attention, start-up."""

from bench.growth.table import table

__all__ = ["table"]
