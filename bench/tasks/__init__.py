"""Every task on real data, beside what is published: `python -m bench.tasks`."""
