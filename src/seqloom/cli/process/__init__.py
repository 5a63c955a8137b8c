"""Commands as processes: their start, Ctrl-C, their progress, and output that can be continued."""
