"""One file per command: its options, then what it does."""
