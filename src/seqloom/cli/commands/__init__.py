"""The commands, one file per command.

The first function of each file is the command; its parameters are the arguments and options.
"""
