"""Reports about claims: as objects, JSON and HTML."""
