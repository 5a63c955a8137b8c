"""Memory and time as a function of corpus size, output length, beam width and source length."""
