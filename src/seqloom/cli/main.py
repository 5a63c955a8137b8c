"""seqloom: the command line."""

import sys
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from seqloom import __version__
from seqloom.cli.align import align
from seqloom.cli.caption import caption
from seqloom.cli.compare import compare
from seqloom.cli.complete import complete
from seqloom.cli.config import config
from seqloom.cli.demo import demo
from seqloom.cli.doctor import doctor
from seqloom.cli.evaluate import evaluate
from seqloom.cli.explain import explain
from seqloom.cli.forecast import forecast
from seqloom.cli.gradients import gradients
from seqloom.cli.inspect import inspect
from seqloom.cli.lab import lab
from seqloom.cli.label import label
from seqloom.cli.output import complain, put, tell, write_in_utf8
from seqloom.cli.score import score
from seqloom.cli.search import search
from seqloom.cli.serve import serve
from seqloom.cli.slips import slips
from seqloom.cli.stdout import ReaderGoneError, watched_stdout
from seqloom.cli.train import train
from seqloom.cli.translate import translate
from seqloom.core.errors import SeqloomError, StorageError


class _Commands(TyperGroup):
    """The commands; a word that is like none of them is answered with all of them."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word, known = args[0], self.list_commands(ctx)
        if word not in known and not get_close_matches(word, known):
            ctx.fail(f"No such command '{word}'. There are {', '.join(known)}.")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="seqloom",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: seqloom demo",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        put(f"seqloom {__version__}")
        raise typer.Exit


@app.callback()
def _seqloom(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and leave."
        ),
    ] = False,
) -> None:
    """Learn to map sequences to sequences: train, look inside, evaluate, translate."""


app.command(epilog="Example: seqloom demo")(demo)
app.command(epilog="Example: seqloom train recipe.toml --run runs/first --set training.steps=2000")(
    train
)
app.command(epilog="Example: echo 'Das gefällt mir.' | seqloom translate runs/demo --beam 5")(
    translate
)
app.command(epilog="Example: seqloom complete runs/sentences 'I am' --samples 5 --top-k 20")(
    complete
)
app.command(epilog="Example: seqloom caption runs/photos dog.jpg --show looks.png")(caption)
app.command(epilog="Example: seqloom forecast runs/paths observed.csv")(forecast)
app.command(epilog="Example: seqloom label runs/language 'Das gefällt mir.' --all")(label)
app.command(epilog="Example: seqloom evaluate runs/demo --against runs/plain")(evaluate)
app.command(epilog="Example: seqloom score runs/demo test.de test.en")(score)
app.command(epilog="Example: seqloom serve runs/demo --port 8000")(serve)
app.command(epilog="Example: seqloom lab bottleneck", rich_help_panel="Look inside")(lab)
app.command(
    epilog="Example: seqloom search runs/demo 'Das gefällt mir.' --beam 4 --out tree.html",
    rich_help_panel="Look inside",
)(search)
app.command(
    epilog="Example: seqloom slips runs/demo test.de test.en --out slips.png",
    rich_help_panel="Look inside",
)(slips)
app.command(
    epilog="Example: seqloom compare runs/demo runs/plain --shown 20 --out both.html",
    rich_help_panel="Look inside",
)(compare)
app.command(
    rich_help_panel="Look inside",
    epilog="Example: seqloom explain runs/demo 'Das gefällt mir.' --step 2",
)(explain)
app.command(
    rich_help_panel="Look inside",
    epilog="Example: seqloom gradients runs/demo 'Das gefällt mir.' 'I like it.' --step 3",
)(gradients)
app.command(epilog="Example: seqloom doctor recipe.toml")(doctor)
app.command(epilog="Example: seqloom config recipe.toml --set decoding.width=8")(config)
app.command(
    rich_help_panel="Look inside",
    epilog="Example: seqloom inspect runs/demo 'Das gefällt mir.' --beam 5",
)(inspect)
app.command(
    rich_help_panel="Look inside",
    epilog="Example: seqloom align runs/demo test.de test.en --gold gold.txt",
)(align)


def run() -> None:
    """The entry point. Whatever a user can cause ends in a sentence and an exit code."""
    write_in_utf8()
    try:
        with watched_stdout():
            app(prog_name="seqloom")
    except SeqloomError as error:
        complain(error)
        sys.exit(error.exit_code)
    except ReaderGoneError:
        sys.exit(128 + 13)  # as a program ends that the signal of a broken pipe kills
    except KeyboardInterrupt:
        tell("stopped")
        sys.exit(130)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        complain(StorageError(f"{place}{error.strerror or error}"))
        sys.exit(StorageError.exit_code)
