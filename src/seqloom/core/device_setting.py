"""The environment variable that selects the device. This module does not import torch."""

DEVICE_VARIABLE = "SEQLOOM_DEVICE"
"""Environment variable that selects the device of models: "cpu", "cuda" or "cuda:1". If it is not
set, models run on a GPU if there is one. The option --device sets it."""
