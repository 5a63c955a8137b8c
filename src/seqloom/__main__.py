"""`python -m seqloom`: the command line."""

from seqloom.cli.main import run

if __name__ == "__main__":
    run()
