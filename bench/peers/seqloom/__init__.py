"""seqloom itself. As at the command line, it is imported before torch is: see core/allocation.py."""

import seqloom as seqloom
