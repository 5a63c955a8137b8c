"""The HTTP API: one file per endpoint, its schemas, and the errors it responds with."""
