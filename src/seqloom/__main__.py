"""python -m seqloom: the command line, where only a Python is at hand."""

from seqloom.cli.main import run

if __name__ == "__main__":
    run()
