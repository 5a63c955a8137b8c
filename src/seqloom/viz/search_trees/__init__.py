"""Drawings of a search tree: as a figure, as a page and in the terminal."""
