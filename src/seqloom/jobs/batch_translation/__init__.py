"""Translation of many files in blocks of lines, by several processes or machines."""
