"""Preparation of texts for a model, and predictions for whole texts."""
