"""The peers: one folder each, with what it needs and the small programs that drive it."""
