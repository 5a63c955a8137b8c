"""The command line. Only this package prints and exits.

`commands` has one file per command. `main` registers the commands; the other modules are shared
between them. Command files import torch and everything that needs it inside their functions, so
that `seqloom --help` and error messages about options do not wait for it.
"""
