"""Run folders on disk, and trained models in use."""
