"""Reports on the experiments that test claims: as objects, JSON and HTML."""
