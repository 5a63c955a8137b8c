"""Finish beginnings, or make sentences up."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqloom.cli.output import put, tell
from seqloom.cli.work.changes import changed_decoding
from seqloom.core.errors import DataError
from seqloom.runs.run import load


def complete(
    folder: Path,
    prompts: Sequence[str],
    samples: int,
    drawn: dict[str, Any],
    overrides: Sequence[str],
) -> None:
    for prompt in prompts:
        try:
            prompt.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"prompt {prompt!a}: is not valid UTF-8") from error
    run = load(folder)
    if "seed" not in drawn:
        drawn = drawn | {"seed": secrets.randbelow(10**6)}
        tell(f"seed {drawn['seed']}; the same again with --seed {drawn['seed']}")
    options = [f"decoding.{key}={value}" for key, value in drawn.items()]
    decoding = changed_decoding(
        run.config,
        ["decoding.kind=sample", f"decoding.samples={samples}", *options, *overrides],
    )
    for outputs in run.complete(prompts, decoding=decoding, n_best=samples):
        for output in outputs:
            put(output.text)
