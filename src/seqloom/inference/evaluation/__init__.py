"""Scores of a run on a data split."""
