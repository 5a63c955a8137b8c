"""Word alignment by attention, compared with human alignments: `python -m bench.alignment`."""
