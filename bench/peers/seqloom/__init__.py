"""seqloom. It is imported before torch, as on the command line: see core/allocator.py."""

import seqloom as seqloom
