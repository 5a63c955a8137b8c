"""The command `seqloom complete`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from seqloom.cli.options import EnsembleMembers, RunFolder, RunSettings
from seqloom.cli.output import print_line, print_message, print_warning
from seqloom.core.errors import ConfigError

if TYPE_CHECKING:
    from seqloom.config.schema.decoding import DecodingConfig
    from seqloom.inference.run import Run


def complete(
    run_folder: RunFolder,
    prompts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROMPT]...", help="Texts to complete. Default: one empty prompt."),
    ] = None,
    samples: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Number of completions per prompt.")
    ] = 1,
    temperature: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help="Softmax temperature. Below 1: more likely tokens; above 1: more variety.",
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(
            metavar="K", min=0, help="Sample from the K most likely tokens. 0: from all tokens."
        ),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Sample from the most likely tokens whose probabilities add up to P.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Random seed of the sampling. Default: a new one each time."
        ),
    ] = None,
    settings: RunSettings = None,
    ensemble: EnsembleMembers = None,
) -> None:
    """Complete prompts, or generate text without a prompt, with a language model."""
    import secrets

    from seqloom.cli.inputs import check_texts
    from seqloom.cli.recipe_settings import load_run
    from seqloom.config.schema.decoding import SampleConfig

    prompts = prompts or [""]
    check_texts(prompts)
    run, settings = load_run([run_folder, *(ensemble or ())], settings)
    random_seed = secrets.randbelow(10**6)
    sampling = {
        "kind": "sample",
        "samples": samples,
        "seed": random_seed if seed is None else seed,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
    }
    changes = [f"decoding.{key}={value}" for key, value in sampling.items() if value is not None]
    decoding = _change_decoding(run, [*changes, *settings], temperature)
    completions = run.complete(prompts, decoding=decoding, n_best=samples)
    if isinstance(decoding, SampleConfig) and seed is None and decoding.seed == random_seed:
        print_message(f"seed {random_seed}; repeat these samples with --seed {random_seed}")
    limit = run.model.max_target_length
    if limit is not None and decoding.max_length is not None and decoding.max_length > limit:
        print_warning(f"texts end at {limit} tokens, the maximum length of the model")
    # A blank line separates texts if one of them has several lines.
    separate = any("\n" in output.text for outputs in completions for output in outputs)
    printed = 0
    for prompt, outputs in zip(prompts, completions, strict=True):
        unknown = list(dict.fromkeys(run.task.target_tokenizer.unknown(prompt)))
        if unknown:
            print_warning(
                f"prompt '{prompt}': not in the vocabulary of the model: "
                f"{', '.join(map(repr, unknown))}. Replaced by the unknown token."
            )
        decoded_prompt = _decoded_prompt(run, prompt)
        for output in outputs:
            if separate and printed:
                print_line("")
            printed += 1
            if unknown and output.text.startswith(decoded_prompt):
                print_line(prompt + output.text.removeprefix(decoded_prompt))
            else:
                print_line(output.text)


def _change_decoding(
    run: Run, settings: Sequence[str], temperature: float | None
) -> DecodingConfig:
    """Return the run's decoding configuration, changed by `settings`.

    temperature: value of --temperature. It is used only for an error message: the temperature 0 is
                 invalid, and the message recommends --top-k 1 instead
    """
    from seqloom.cli.recipe_settings import change_decoding

    try:
        return change_decoding(run.config, settings)
    except ConfigError as error:
        if temperature != 0:
            raise
        hint = "To choose the most likely token at every step, use --top-k 1."
        raise ConfigError(f"{error}\n  {hint}") from error


def _decoded_prompt(run: Run, prompt: str) -> str:
    """Return the prompt after encoding and decoding it with the model's tokenizer."""
    tokenizer = run.task.target_tokenizer
    return tokenizer.decode(tokenizer.encode(prompt))
