"""Start of the program, Ctrl-C, progress bars, and translation output that can be continued."""
