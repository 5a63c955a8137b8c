"""Claims about sequence models, which experiments test. Each module defines one claim, `CLAIM`."""
