"""`python -m seqloom`: the command line."""

from seqloom.cli.process.entry import run

if __name__ == "__main__":
    run()
