"""Options that every command has, and shell completion of arguments."""
