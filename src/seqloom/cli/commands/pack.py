"""The commands `seqloom pack` and `seqloom unpack`."""

from pathlib import Path
from typing import Annotated

from seqloom.cli.options import RunPath, argument
from seqloom.cli.output import print_message
from seqloom.core.errors import ConfigError


def pack(
    run_folder: RunPath,
    file: Annotated[Path, argument("FILE", "File to write, for example model.seqloom.")],
) -> None:
    """Write a run to one file, without the checkpoints that only --resume needs.

    Every command that takes a run folder also takes this file. The same run always gives the same
    bytes.
    """
    from seqloom.runs.archive import pack_run

    if file.is_dir():
        raise ConfigError(f"{file}: is a folder. Give the name of a file, such as model.seqloom.")
    pack_run(run_folder, file)
    print_message(f"{file}: {file.stat().st_size:,} bytes")


def unpack(
    file: Annotated[Path, argument("FILE", "File that `seqloom pack` wrote.")],
    folder: Annotated[Path, argument("FOLDER", "New run folder.")],
) -> None:
    """Check all files in a packed run, then extract them to a new run folder."""
    from seqloom.runs.archive import unpack_run

    unpack_run(file, folder)
    print_message(f"the run is in {folder}")
