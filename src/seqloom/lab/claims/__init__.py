"""The claims, one a file. Each file ends in CLAIM; its name is the file's, with hyphens."""
