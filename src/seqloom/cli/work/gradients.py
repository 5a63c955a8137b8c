"""Gradients through time: of a sentence, or the means over files."""

import json
from pathlib import Path

from seqloom.cli.output import put, tell, warn
from seqloom.cli.work.lines import check_files
from seqloom.cli.work.tables import bar, draws_blocks, stdout_console
from seqloom.core.errors import ConfigError, DataError
from seqloom.core.signature import NoSource
from seqloom.core.storage import write_file
from seqloom.data.files import read_lines
from seqloom.inside.gradients import Profile, Trace, profile, trace
from seqloom.runs.run import Run, load
from seqloom.viz.figures import image_format
from seqloom.viz.gradients import draw_gradients, save_gradients


def gradients(
    folder: Path,
    texts: tuple[str, str | None],
    step: int | None,
    lines: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """texts: what is read and what should come out; their files, if they come in lines"""
    if out is not None and out.suffix.lower() != ".json":
        image_format(out)  # a name that cannot be drawn is told before the work begins
    run = load(folder)
    found = _over_files(run, texts, step) if lines else _of_sentence(run, texts, step)
    content = json.dumps(found.to_json(), ensure_ascii=False)
    if as_json:
        put(content)
    else:
        console = stdout_console()
        picture = draw_gradients(found, ascii_only=not draws_blocks())
        console.print(picture, soft_wrap=True, end="")
    if out is None:
        return
    if out.suffix.lower() == ".json":
        write_file(out, f"{content}\n".encode())
    else:
        save_gradients(out, found)
    tell(f"written to {out}")


def _of_sentence(run: Run, texts: tuple[str, str | None], step: int | None) -> Trace:
    text, target = texts
    if _speaks_alone(run):
        if target is not None:
            raise ConfigError(
                f"{run.name}: is a language model, which reads nothing; give one text"
            )
        return trace(run, "", text, step)
    return trace(run, text, target, step)


def _over_files(run: Run, texts: tuple[str, str | None], step: int | None) -> Profile:
    files = [Path(text) for text in texts if text is not None]
    wanted = 1 if _speaks_alone(run) else 2
    if len(files) != wanted:
        what = "one file" if wanted == 1 else "two files, what is read and what should come out"
        raise ConfigError(f"{run.name}: give {what}")
    check_files(files)
    columns = [list(read_lines(file)) for file in files]
    if len({len(column) for column in columns}) > 1:
        counts = " and ".join(f"{len(column):,}" for column in columns)
        raise DataError(
            f"{files[0]} and {files[1]}: have {counts} lines; line n of one must belong to line n "
            "of the other"
        )
    pairs = list(zip(*columns, strict=True))
    kept = [pair for pair in pairs if all(text.strip() for text in pair)]
    if len(kept) < len(pairs):
        warn(f"{len(pairs) - len(kept):,} of {len(pairs):,} lines are blank and were left out")
    if not kept:
        raise DataError(f"{files[0]}: has no line that is not blank; give some sentences")
    sources = ["" if wanted == 1 else pair[0] for pair in kept]
    with bar("going back") as advance:
        found = profile(run, sources, [pair[-1] for pair in kept], step, advance)
    if found.sentences < len(kept):
        short = len(kept) - found.sentences
        warn(f"{short:,} of {len(kept):,} sentences have fewer than {step} steps and were left out")
    return found


def _speaks_alone(run: Run) -> bool:
    return isinstance(run.task.signature.source, NoSource)
