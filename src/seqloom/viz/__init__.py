"""Pictures from values: for the terminal, and for files."""
