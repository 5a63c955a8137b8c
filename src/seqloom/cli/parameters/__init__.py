"""The global options --quiet, --threads and --device, and shell completion of arguments."""
