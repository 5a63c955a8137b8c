"""The commands, options and help panels. A change here is a change for every user."""

from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from seqloom.cli.main import app
from seqloom.cli.output import program_name
from support.cli_runner import all_commands, run_cli

SURFACE = {
    "demo": {"--run", "--set", "--quick", "--compare"},
    "train": {
        *("RECIPE", "--run", "--from", "--set", "--resume"),
    },
    "sweep": {"RECIPE", "--set", "--run", "--trials", "--jobs", "--ray", "--json"},
    "info": {"RUN", "--json"},
    "track": {"RUN", "--to", "--out", "--follow"},
    "pack": {"RUN", "FILE"},
    "unpack": {"FILE", "FOLDER"},
    "new": {"[FILE]...", "--recipe", "--source", "--target"},
    "runs": {"[FOLDER]", "--json"},
    "translate": {
        *("RUN", "[FILE]...", "--beam", "--n-best", "--scores", "--alignments", "--json", "--set"),
        *("--with", "--engine", "--to", "--through", "--split", "--pass-through", "--output"),
        *("--overwrite", "--glossary"),
    },
    "translate-files": {
        *("RUN", "PATTERN...", "--beam", "--n-best", "--scores", "--alignments", "--json", "--set"),
        *("--with", "--engine", "--to", "--through", "--split", "--pass-through", "--output"),
        *("--overwrite", "--field", "--output-field", "--workers", "--shard", "--ray"),
        "--glossary",
    },
    "augment": {
        *("RUN", "FILE...", "--output", "--side", "--tag", "--max-ratio", "--beam", "--engine"),
        *("--set", "--with", "--to", "--overwrite"),
    },
    "translate-file": {
        *("RUN", "FILE", "--output", "--overwrite", "--format", "--beam", "--engine", "--set"),
        *("--to", "--glossary"),
    },
    "complete": {
        *("RUN", "[PROMPT]...", "--samples", "--temperature", "--top-k", "--top-p", "--seed"),
        *("--set", "--with"),
    },
    "caption": {"RUN", "IMAGE...", "--show", "--beam", "--json", "--set", "--with"},
    "forecast": {"RUN", "FILE", "--json"},
    "label": {"RUN", "[TEXT]...", "--all", "--json", "--with"},
    "evaluate": {
        *("RUN", "--split", "--against", "--beam", "--json", "--set", "--with", "--lowercase"),
        "--engine",
    },
    "score": {"RUN", "SOURCE", "[TARGET]", "--with"},
    "lab": {"[CLAIM]...", "--size", "--seeds", "--out", "--jobs", "--json"},
    "search": {
        *("RUN", "[TEXT]", "--beam", "--n-best", "--instead", "--all", "--out", "--json"),
        *("--set", "--with", "--to"),
    },
    "error-propagation": {"RUN", "[FILE]...", "--split", "--out", "--json", "--with"},
    "compare": {
        *("RUN", "[FILE]...", "--text", "--split", "--shown", "--beam", "--out", "--json", "--set"),
    },
    "explain": {
        *("RUN", "[TEXT]", "--step", "--target", "--layer", "--head", "--full", "--beam"),
        *("--json", "--set"),
    },
    "example attention": {
        *("--score", "--scale", "--select", "--gamma", "--query", "--h", "--wq", "--wk", "--wv"),
        *("--full", "--json"),
    },
    "example search": {"--beam", "--n-best", "--all", "--out", "--json", "--set"},
    "lookup": {
        *("--keys", "--values", "--query", "--select", "--score", "--gamma", "--temperature"),
        *("--out", "--json"),
    },
    "draw rnn": {"RUN", "[TEXT]", "--target", "--out"},
    "draw encoder-decoder": {"RUN", "[TEXT]", "--target", "--out"},
    "draw search": {"[RUN]", "[TEXT]", "--beam", "--out"},
    "draw lookup": {"[RUN]", "[TEXT]", "--target", "--step", "--out"},
    "draw transformer": {"[RUN]", "--part", "--out"},
    "gradients": {
        *("RUN", "TEXT", "[TARGET]", "--step", "--at", "--layer", "--head", "--full", "--out"),
        "--json",
    },
    "gradient-profile": {"RUN", "FILE...", "--step", "--out", "--json"},
    "serve": {
        *("RUN...", "--host", "--port", "--engine", "--set", "--languages", "--keys", "--limit"),
        *("--metrics-port", "--workers", "--root-path", "--allow-host", "--allow-origin"),
        *("--frame-ancestors", "--access-log"),
    },
    "import": {"FOLDER", "--run", "--from"},
    "export": {"RUN", "--to", "--out", "--license", "--languages"},
    "doctor": {"RECIPE", "--from", "--set", "--json"},
    "prepare": {"RECIPE", "--from", "--set", "--workers", "--verify"},
    "config": {"RECIPE", "--set"},
    "schema": set(),
    "inspect": {
        *("RUN", "[TEXT]...", "--out", "--layer", "--head", "--pieces", "--n-best", "--beam"),
        *("--json", "--set", "--with", "--to"),
    },
    "align": {
        *("RUN", "SOURCE", "[TARGET]", "--soft", "--reverse", "--symmetrise", "--json", "--with"),
    },
    "alignment-error": {
        *("RUN", "SOURCE", "[TARGET]", "--gold", "--reverse", "--symmetrise", "--json", "--with"),
    },
    "alignment-heads": {"RUN", "SOURCE", "[TARGET]", "--gold", "--json"},
}
WITHOUT_MODEL = {"config", "schema", "new", "prepare", "runs", "info", "track", "pack", "unpack"}
"""Commands that do not compute with torch."""
GLOBAL_OPTIONS = {"--quiet", "--threads", "--device"}
GROUP_OPTIONS = {"--version", "--install-completion", "--show-completion", *GLOBAL_OPTIONS}
PANELS = {
    "Train": ["demo", "new", "train", "config", "schema", "doctor", "prepare", "augment", "sweep"],
    "Manage runs": ["runs", "info", "track", "pack", "unpack"],
    "Use a trained model": [
        "translate",
        "translate-file",
        "translate-files",
        "complete",
        "caption",
        "forecast",
        "label",
        "score",
    ],
    "Evaluate": ["evaluate", "compare", "align", "alignment-error", "alignment-heads"],
    "Look inside": [
        *(
            "inspect",
            "search",
            "explain",
            "lookup",
            "gradients",
            "gradient-profile",
            "error-propagation",
            "lab",
            "draw",
            "example",
        ),
    ],
    "Serve": ["serve"],
    "Exchange models with other toolkits": ["import", "export"],
}
GROUP: Any = get_command(app)
COMMANDS: dict[str, Any] = dict(all_commands())


def parameter_names(command: object) -> set[str]:
    """Options by their long name, arguments by their metavar."""
    parameters = getattr(command, "params", [])
    names = {
        parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar
        for parameter in parameters
    }
    return names - {"-h", "--help"}


def test_commands_and_options_are_frozen() -> None:
    expected = {
        name: options | ({"--quiet"} if name in WITHOUT_MODEL else GLOBAL_OPTIONS)
        for name, options in SURFACE.items()
    }
    assert {name: parameter_names(command) for name, command in COMMANDS.items()} == expected
    assert parameter_names(get_command(app)) == GROUP_OPTIONS


def test_every_command_and_option_has_help_and_every_command_an_example() -> None:
    for name, command in COMMANDS.items():
        assert command.help, name
        assert f"seqloom {name}" in command.epilog
        assert command.epilog.startswith("Example: ")
        assert all(parameter.help for parameter in command.params), name


def test_every_command_is_in_one_panel() -> None:
    panels: dict[str, list[str]] = {}
    for name, command in GROUP.commands.items():
        panels.setdefault(command.rich_help_panel, []).append(name)
    assert panels == PANELS


@pytest.mark.parametrize("command", ["", *SURFACE])
@pytest.mark.parametrize("columns", ["80", "100"])
def test_help_shows_no_python_types(
    command: str, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    result = run_cli(*command.split(), "--help")
    assert result.exit_code == 0
    assert f"Usage: seqloom {command}".rstrip() in result.stdout
    for python_type in ("<bool>", "<path>", "<int", "<float", "<str", "list[", "{RUN}"):
        assert python_type not in result.stdout
    assert all(len(line) <= int(columns) for line in result.stdout.splitlines())


@pytest.mark.parametrize("command", SURFACE)
def test_common_options_fit_on_a_screen(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    panels = run_cli(*command.split(), "--help").stdout.split("╭─ ")[1:]
    [options] = [panel for panel in panels if panel.startswith("Options ")]
    assert options.count("\n") <= 32


def test_program_name_can_be_typed_into_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an environment that is not activated, PATH does not contain the program."""
    script = tmp_path / "bin" / "seqloom"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(script)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert program_name() == str(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert program_name() == "seqloom"
    monkeypatch.setattr("sys.argv", ["/usr/bin/pytest"])
    assert program_name() == "seqloom"
