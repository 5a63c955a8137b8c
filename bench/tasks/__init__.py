"""All tasks on real data, compared with published results: `python -m bench.tasks`."""
