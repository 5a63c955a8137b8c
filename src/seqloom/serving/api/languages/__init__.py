"""Languages: sentence splitting, language pairs of runs, names and detection."""
