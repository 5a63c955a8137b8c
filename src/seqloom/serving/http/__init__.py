"""HTTP behaviour around the application: host and origin checks, path prefix, compression, logs."""
