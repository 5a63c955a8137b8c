"""The command line. Only this package prints and exits.

`commands` has one file per command, and `main` registers the commands. The other modules contain
code that several commands use. Command files import torch, and modules that import torch, inside
functions, not at the top of the file. So `seqloom --help` and error messages about options appear
without the delay of importing torch.
"""
