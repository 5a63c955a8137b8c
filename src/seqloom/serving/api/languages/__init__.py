"""Languages of the server: language codes, language pairs of runs, language detection."""
