"""Models, recipes and data that the experiments of several claims use."""
