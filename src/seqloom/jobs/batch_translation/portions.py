"""Number of lines of a file that are sorted by length and decoded together."""

CPU_PORTION = 1_000
"""Number of lines on a CPU. Larger portions are not faster there, and a command that is interrupted
repeats at most one portion."""
GPU_PORTION = 10_000
"""Number of lines on a GPU, which decodes thousands of lines at once."""


def portion_lines(device_type: str) -> int:
    """Return the number of lines for a type of device, such as "cpu" or "cuda"."""
    return GPU_PORTION if device_type == "cuda" else CPU_PORTION
