"""Entry point of the program, Ctrl-C, progress bars, and output files of translations."""
