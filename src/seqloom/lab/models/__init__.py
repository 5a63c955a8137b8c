"""Models, recipes and data that several claims share."""
