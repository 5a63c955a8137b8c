"""The `seqloom` program: all commands, and the exit codes of errors."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from seqloom import __version__
from seqloom.cli.commands import draw, example
from seqloom.cli.commands.align import align, alignment_error, alignment_heads
from seqloom.cli.commands.augment import augment
from seqloom.cli.commands.caption import caption
from seqloom.cli.commands.compare import compare
from seqloom.cli.commands.complete import complete
from seqloom.cli.commands.config import config, schema
from seqloom.cli.commands.demo import demo
from seqloom.cli.commands.doctor import doctor
from seqloom.cli.commands.error_propagation import error_propagation
from seqloom.cli.commands.evaluate import evaluate
from seqloom.cli.commands.explain import explain
from seqloom.cli.commands.export import export
from seqloom.cli.commands.forecast import forecast
from seqloom.cli.commands.gradients import gradient_profile, gradients
from seqloom.cli.commands.import_model import import_model
from seqloom.cli.commands.info import info
from seqloom.cli.commands.inspect import inspect
from seqloom.cli.commands.lab import lab
from seqloom.cli.commands.label import label
from seqloom.cli.commands.lookup import lookup
from seqloom.cli.commands.new import new
from seqloom.cli.commands.pack import pack, unpack
from seqloom.cli.commands.prepare import prepare
from seqloom.cli.commands.runs import runs
from seqloom.cli.commands.score import score
from seqloom.cli.commands.search import search
from seqloom.cli.commands.serve import serve
from seqloom.cli.commands.sweep import sweep
from seqloom.cli.commands.track import track
from seqloom.cli.commands.train import train
from seqloom.cli.commands.translate import translate
from seqloom.cli.commands.translate_file import translate_file
from seqloom.cli.commands.translate_files import translate_files
from seqloom.cli.help import Command, CommandGroup
from seqloom.cli.output import print_error, print_line, print_message, use_utf8
from seqloom.cli.parameters.global_options import (
    Device,
    Quiet,
    Threads,
    restored_settings,
    with_global_options,
)
from seqloom.cli.process.interrupts import EXIT_CODE as INTERRUPTED_EXIT_CODE
from seqloom.cli.process.interrupts import CommandInterrupted, catch_interrupts
from seqloom.cli.stdout import StdoutClosedError, checked_stdout
from seqloom.cli.torch_setup import prepare_for_torch
from seqloom.core.errors import PeerError, SeqloomError, StorageError
from seqloom.core.launch import is_main_rank

SIGPIPE_EXIT_CODE = 128 + 13
"""Exit code of a program that was ended by the signal SIGPIPE."""

app = typer.Typer(
    name="seqloom",
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: seqloom demo",
)


def _print_version(requested: bool) -> None:
    if requested:
        print_line(f"seqloom {__version__}")
        raise typer.Exit


@app.callback()
def _seqloom(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    quiet: Quiet = False,
    threads: Threads = None,
    device: Device = None,
) -> None:
    """Sequence-to-sequence models: train, use, evaluate, inspect, serve."""


def _add(
    panel: str,
    command: Callable[..., None],
    example: str,
    name: str | None = None,
    *,
    group: typer.Typer = app,
    uses_model: bool = True,
) -> None:
    """Register a command.

    panel:      panel of `seqloom --help` that lists the command
    example:    example for the help of the command itself
    name:       name of the command. Default: the name of the function
    group:      group of commands. Default: the commands of seqloom itself
    uses_model: True if the command computes with torch. Such a command has the options --threads
                and --device
    """
    epilog = f"Example: {example}"
    register = group.command(name, cls=Command, rich_help_panel=panel, epilog=epilog)
    register(with_global_options(command, uses_model))


def _add_group(panel: str, name: str, help: str) -> typer.Typer:
    """Register a group of commands, such as `seqloom draw …`."""
    group = typer.Typer(cls=CommandGroup, no_args_is_help=True, help=help)
    app.add_typer(group, name=name, rich_help_panel=panel)
    return group


_add("Train", demo, "seqloom demo")
_add(
    "Train",
    new,
    "seqloom new pairs.tsv --recipe recipe.toml --source de --target en",
    uses_model=False,
)
_add("Train", train, "seqloom train recipe.toml --run runs/first --set training.steps=2000")
_add("Train", config, "seqloom config recipe.toml --set decoding.width=8", uses_model=False)
_add("Train", schema, "seqloom schema > recipe.schema.json", uses_model=False)
_add("Train", doctor, "seqloom doctor recipe.toml")
_add("Train", prepare, "seqloom prepare recipe.toml --workers 8", uses_model=False)
_add("Train", augment, "seqloom augment runs/en-de english.txt --output synthetic.tsv")

_add("Train", sweep, "seqloom sweep recipe.toml --set training.seed=1,2,3 --jobs 2")

_RUNS = "Manage runs"
_add(_RUNS, runs, "seqloom runs", uses_model=False)
_add(_RUNS, info, "seqloom info runs/demo", uses_model=False)
_add(_RUNS, track, "seqloom track runs/demo --to tensorboard --follow", uses_model=False)
_add(_RUNS, pack, "seqloom pack runs/demo demo.seqloom", uses_model=False)
_add(_RUNS, unpack, "seqloom unpack demo.seqloom runs/demo-copy", uses_model=False)

_USE = "Use a trained model"
_add(_USE, translate, "echo 'Das gefällt mir.' | seqloom translate runs/demo --beam 5")
_add(_USE, translate_file, "seqloom translate-file runs/demo page.html --output page.en.html")
_add(_USE, translate_files, "seqloom translate-files runs/demo 'in/*.txt' --output out --workers 4")
_add(_USE, complete, "seqloom complete runs/sentences 'I am' --samples 5 --top-k 20")
_add(_USE, caption, "seqloom caption runs/photos dog.jpg --show attention.png")
_add(_USE, forecast, "seqloom forecast runs/paths observed.csv")
_add(_USE, label, "seqloom label runs/language 'Das gefällt mir.' --all")
_add(_USE, score, "seqloom score runs/demo test.de test.en")

_add("Evaluate", evaluate, "seqloom evaluate runs/demo --against runs/plain")
_add("Evaluate", compare, "seqloom compare runs/demo runs/plain --shown 20 --out both.html")
_add("Evaluate", align, "seqloom align runs/demo test.de test.en")
_GOLD = "runs/demo test.de test.en --gold gold.txt"
_add("Evaluate", alignment_error, f"seqloom alignment-error {_GOLD}")
_add("Evaluate", alignment_heads, f"seqloom alignment-heads {_GOLD}")

_INSIDE = "Look inside"
_add(_INSIDE, inspect, "seqloom inspect runs/demo 'Das gefällt mir.' --beam 5")
_add(_INSIDE, search, "seqloom search runs/demo 'Das gefällt mir.' --beam 4 --out tree.html")
_add(_INSIDE, explain, "seqloom explain runs/demo 'Das gefällt mir.' --step 2")
_add(_INSIDE, lookup, "seqloom lookup --query 2,3 --score rbf --gamma 0.5 --temperature 2")
_add(_INSIDE, gradients, "seqloom gradients runs/demo 'Das gefällt mir.' 'I like it.' --step 3")
_add(_INSIDE, gradient_profile, "seqloom gradient-profile runs/demo test.de test.en")
_add(
    _INSIDE,
    error_propagation,
    "seqloom error-propagation runs/demo test.de test.en --out errors.png",
)
_draw = _add_group(_INSIDE, "draw", "Draw a figure for teaching as SVG, of a run or an example.")
_TEXT = "runs/demo 'Das gefällt mir.' --out figure.svg"
_add("Commands", draw.rnn, f"seqloom draw rnn {_TEXT}", group=_draw)
_add("Commands", draw.encoder_decoder, f"seqloom draw encoder-decoder {_TEXT}", group=_draw)
_add("Commands", draw.search, f"seqloom draw search {_TEXT} --beam 3", group=_draw)
_add("Commands", draw.lookup, f"seqloom draw lookup {_TEXT} --step 2", group=_draw)
_add("Commands", draw.transformer, "seqloom draw transformer --part encoder", group=_draw)
_example = _add_group(_INSIDE, "example", "Show an example of a lecture, without a run.")
_add("Commands", example.attention, "seqloom example attention --select softmax", group=_example)
_add("Commands", example.search, "seqloom example search --beam 3", group=_example)
_add(_INSIDE, lab, "seqloom lab bottleneck")

_add("Serve", serve, "seqloom serve runs/demo --port 8000")

_OTHER = "Exchange models with other toolkits"
_add(_OTHER, import_model, "seqloom import opus-mt-de-en --run runs/de-en", name="import")
_add(_OTHER, export, "seqloom export runs/de-en --to huggingface --out marian-de-en")


def run() -> None:
    """Run the command line.

    Errors that a user can cause are printed without a traceback. The type of the error determines
    the exit code.
    """
    use_utf8()
    prepare_for_torch()
    try:
        with restored_settings(), catch_interrupts(), checked_stdout():
            app(prog_name="seqloom")
    except PeerError as error:
        sys.exit(error.exit_code)
    except SeqloomError as error:
        print_error(error)
        sys.exit(error.exit_code)
    except StdoutClosedError:
        sys.exit(SIGPIPE_EXIT_CODE)
    except CommandInterrupted as interruption:
        if is_main_rank():
            print_message(str(interruption))
        sys.exit(INTERRUPTED_EXIT_CODE)
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        print_error(StorageError(f"{path}{error.strerror or error}"))
        sys.exit(StorageError.exit_code)
