"""Start of the program, handling of Ctrl-C, progress bars, and output files of translations."""
