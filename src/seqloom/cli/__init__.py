"""The command line. Only this package prints and exits.

`commands` has one file per command, and `main` registers the commands. The other modules contain
code that several commands use.

Importing torch takes seconds. Therefore command files do it inside functions, not at the top of the
file. The same holds for modules that import torch. So `seqloom --help` and error messages about
options appear without delay.
"""
