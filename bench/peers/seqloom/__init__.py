"""seqloom itself. As at the command line, it is imported before torch is: see core/allocator.py."""

import seqloom as seqloom
