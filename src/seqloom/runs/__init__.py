"""Loads and checks run folders. Uses the trained models to predict, score and evaluate."""
