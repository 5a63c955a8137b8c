"""Other toolkits, one folder each: requirements and the programs that run them."""
