"""Many languages in one model: what sharing gives and costs: `python -m bench.languages`."""
