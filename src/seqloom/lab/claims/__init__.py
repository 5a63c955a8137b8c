"""Claims of the lectures, one module each. Every module ends in `CLAIM`."""
