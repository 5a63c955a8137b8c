"""Claims about sequence models. Each module defines one claim, `CLAIM`, and its experiment."""
