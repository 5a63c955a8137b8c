"""HTTP behaviour around the application: host and origin checks, sub-path, compression, access log."""
