"""Trained runs at an HTTP address: merged into batches, streamed, looked into."""
