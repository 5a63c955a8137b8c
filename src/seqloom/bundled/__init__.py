"""Data files: short everyday sentences from Tatoeba. See ATTRIBUTION.md."""
