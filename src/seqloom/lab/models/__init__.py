"""Models, recipes and data that several experiments use."""
