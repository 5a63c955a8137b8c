"""The HTTP service: predictions of trained runs, merged into batches or streamed."""
