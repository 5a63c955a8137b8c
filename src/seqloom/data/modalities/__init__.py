"""Kinds of sources: text, images and frames. Each module holds all that is special about one kind."""
