"""Declarations of studies (TOML), and the modules of those that measure more than a test split."""
