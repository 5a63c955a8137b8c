"""The command `seqloom complete`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from seqloom.cli.options import EnsembleMembers, RunFolder, RunSettings, argument
from seqloom.cli.output import print_line, print_message, print_warning
from seqloom.cli.parameters.prediction_options import with_prediction_options
from seqloom.inference.options import DEFAULT_OPTIONS, PredictionOptions

if TYPE_CHECKING:
    from seqloom.inference.run import Run


@with_prediction_options("complete")
def complete(
    run_folder: RunFolder,
    prompts: Annotated[
        list[str] | None, argument("[PROMPT]...", "Texts to complete. Default: one empty prompt.")
    ] = None,
    options: PredictionOptions = DEFAULT_OPTIONS,
    settings: RunSettings = None,
    ensemble: EnsembleMembers = None,
) -> None:
    """Complete prompts, or generate text without a prompt, with a language model."""
    import secrets

    from seqloom.cli.inputs import check_texts
    from seqloom.cli.recipe_settings import change_decoding, load_run
    from seqloom.config.schema.decoding import SampleConfig
    from seqloom.inference.search_settings import completion_search

    prompts = prompts or [""]
    check_texts(prompts)
    run, settings = load_run([run_folder, *(ensemble or ())], settings)
    random_seed = secrets.randbelow(10**6)
    has_seed = options.seed is not None
    decoding = change_decoding(run.config, ["decoding.kind=sample", *settings])
    if isinstance(decoding, SampleConfig):
        options = options if has_seed else replace(options, seed=random_seed)
        decoding = completion_search(decoding, options)
    completions = run.complete(prompts, decoding=decoding, n_best=options.n_best)
    if isinstance(decoding, SampleConfig) and not has_seed:
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


def _decoded_prompt(run: Run, prompt: str) -> str:
    """Return the prompt after encoding and decoding it with the model's tokenizer."""
    tokenizer = run.task.target_tokenizer
    return tokenizer.decode(tokenizer.encode(prompt))
