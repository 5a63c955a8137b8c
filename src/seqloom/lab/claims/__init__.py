"""Claims of the lectures, one module each. Every module defines its claim as `CLAIM`."""
