"""The run folder: its files, atomic checkpoints and integrity checks."""
