"""Using a run: preparing texts, searching, finishing predictions, evaluating."""
