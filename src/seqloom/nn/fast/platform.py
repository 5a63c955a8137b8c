"""The processor of this machine."""

import platform

IS_ARM = platform.machine() in ("aarch64", "arm64")
"""True on 64-bit ARM."""
