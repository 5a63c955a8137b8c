"""Modules that all other packages use: errors, batches, file locks, atomic storage and others."""
