"""What the commands do once they are under way. Needs torch; imported by `cli/later.py` alone."""
