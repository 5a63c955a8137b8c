"""Reads and checks run folders, and predicts, scores and evaluates with the trained models."""
