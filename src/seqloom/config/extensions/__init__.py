"""Settings of extensions: classes and functions outside seqloom that a recipe names."""
