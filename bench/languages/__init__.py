"""Multilingual models, zero-shot pairs and transfer between languages: `python -m bench.languages`."""
