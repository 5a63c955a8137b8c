"""Finish beginnings, or make sentences up."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqloom.cli.output import put, tell, warn
from seqloom.cli.work.changes import changed_decoding
from seqloom.config.schema.decoding import DecodingConfig, SampleConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.runs.run import Run, load
from seqloom.text.vocabulary import UNKNOWN


def complete(
    folders: Sequence[Path],
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
    run = load(folders)
    options = {"kind": "sample", "samples": samples, "seed": secrets.randbelow(10**6), **drawn}
    changes = [f"decoding.{key}={value}" for key, value in options.items()]
    decoding = _decoding(run, [*changes, *overrides], drawn.get("temperature"))
    found = run.complete(prompts, decoding=decoding, n_best=samples)
    if isinstance(decoding, SampleConfig) and decoding.seed == options["seed"] != drawn.get("seed"):
        tell(f"seed {decoding.seed}; the same again with --seed {decoding.seed}")
    reach = run.model.max_target_length
    if reach is not None and decoding.max_length is not None and decoding.max_length > reach:
        warn(f"texts stop at {reach} tokens, where the model's positions end")
    apart = any("\n" in output.text for outputs in found for output in outputs)
    written = 0
    for prompt, outputs in zip(prompts, found, strict=True):
        unknown = _unknown(run, prompt)
        if unknown:
            warn(
                f"prompt '{prompt}': the model has never seen {', '.join(map(repr, unknown))}; "
                "it goes on as after an unknown token"
            )
        read = _as_read(run, prompt)
        for output in outputs:
            begins = unknown and output.text.startswith(read)
            if apart and written:
                put("")  # lines of one text are not lines of the next
            written += 1
            put(prompt + output.text.removeprefix(read) if begins else output.text)


def _decoding(run: Run, overrides: Sequence[str], temperature: float | None) -> DecodingConfig:
    try:
        return changed_decoding(run.config, overrides)
    except ConfigError as error:
        if temperature != 0:
            raise
        hint = "for the likeliest token at every step, write --top-k 1 instead of --temperature 0"
        raise ConfigError(f"{error}\n  {hint}") from error


def _as_read(run: Run, prompt: str) -> str:
    """The prompt as it comes back out of the model's vocabulary."""
    tokenizer = run.task.target_tokenizer
    return tokenizer.decode(tokenizer.encode(prompt))


def _unknown(run: Run, prompt: str) -> list[str]:
    """The words, or the characters, of a prompt that are not in the vocabulary, each once."""
    encode = run.task.target_tokenizer.encode
    if UNKNOWN not in encode(prompt):
        return []
    words = run.config.text.target.kind in ("words", "whitespace")
    parts = prompt.split() if words else [part for part in prompt if not part.isspace()]
    return [part for part in dict.fromkeys(parts) if UNKNOWN in encode(part)]
