"""The server process: startup and shutdown, middleware, admission control, batching, loaded runs."""
