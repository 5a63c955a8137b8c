"""Other checkouts of seqloom, with which a benchmark compares the present one."""

import argparse
import subprocess
from pathlib import Path

PRESENT = Path(__file__).parents[2]


def checkout_folder(text: str) -> Path:
    """The value of `--before`: a folder with a checkout of seqloom."""
    folder = Path(text).resolve()
    if not (folder / "src" / "seqloom").is_dir():
        raise argparse.ArgumentTypeError(
            f"{text} has no folder src/seqloom. Give the folder of a checkout of seqloom, for "
            "example one that `git worktree add FOLDER COMMIT` has written."
        )
    return folder


def add_before_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--before",
        type=checkout_folder,
        metavar="CHECKOUT",
        help="Folder of another checkout of seqloom, which is measured alternately with this one. "
        "The run must be one that both can load.",
    )


def commit_of(checkout: Path) -> str:
    """The abbreviated commit of a checkout."""
    command = ["git", "-C", str(checkout), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def in_turn(names: list[str], number: int) -> list[str]:
    """The names in the order of a round. The order changes from round to round, so that a name does
    not always follow the same other name: the load of one measurement can slow down the next one.
    Two names have both orders in two rounds, three names all six orders in six rounds."""
    first = number // 2 % len(names)
    order = names[first:] + names[:first]
    return order[::-1] if number % 2 else order
