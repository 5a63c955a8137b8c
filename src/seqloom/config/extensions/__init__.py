"""Settings of extensions. Extensions are parts of a recipe that are written outside seqloom."""
