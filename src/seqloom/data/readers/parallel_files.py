"""Reads parallel files: line n of the source file belongs to line n of the target file."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from seqloom.config.schema.corpora import FileNames, ParallelConfig, list_file_names
from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.corpus.digests import file_digest
from seqloom.data.example import Example, InvalidLine
from seqloom.data.readers.reader import Reader, Records
from seqloom.data.readers.text_files import FilePart, locate_all, read_lines_or_problems


class ParallelReader(Reader[ParallelConfig]):
    """Reads parallel files, which are cut into parts if all their lines are read."""

    @property
    def files(self) -> tuple[str, ...]:
        corpus = self.corpus
        names = (corpus.source, corpus.target, *corpus.references)
        return tuple(chain.from_iterable(map(list_file_names, names)))

    def read(self) -> Records:
        """Yield an example or an `InvalidLine` for each line of the source files.

        A source file, its target file and its reference files must have the same number of lines.
        Only lines from `first_line` to `last_line` are yielded. These two line numbers count the
        lines of all source files together. The lines outside this range are read too, to check the
        number of lines.
        """
        first, last = self.corpus.first_line, self.corpus.last_line
        earlier = 0  # number of lines in the files before the current ones
        rows = self._rows()
        for paths in rows:
            lines = 0
            for lines, row in enumerate(_read_rows(paths), start=1):
                number = earlier + lines
                if first <= number <= (last or number):
                    yield _example(row, f"{paths[0]}:{lines}")
            earlier += lines
        _refuse_lines_past_end(self.corpus, earlier, [paths[0] for paths in rows], self.table)

    def read_part(self, parts: Sequence[FilePart]) -> Records:
        rows = zip(*map(read_lines_or_problems, parts), strict=True)
        for number, row in enumerate(rows, start=parts[0].first_line):
            yield _example(row, f"{parts[0].path}:{number}")

    def parallel_files(self) -> list[tuple[Path, ...]] | None:
        reads_all = (self.corpus.first_line, self.corpus.last_line) == (1, None)
        return self._rows() if reads_all else None

    def identity(self) -> list[Any]:
        corpus = self.corpus
        settings = corpus.model_dump(mode="json", include={"first_line", "last_line"})
        rows = [list(map(file_digest, paths)) for paths in self._rows()]
        # The digest of a single pair of files has this form, so that existing runs can be resumed.
        return [settings, *rows[0]] if len(rows) == 1 else [settings, rows]

    def _rows(self) -> list[tuple[Path, ...]]:
        """Return the files that belong together: (source, target, *references) for each source file.

        Raise a DataError if the settings name different numbers of files, or if the file names do
        not match, such as a.de and b.en. If files are missing, raise a NotFoundError that lists them
        all.
        """
        corpus = self.corpus
        settings = {"source": corpus.source, "target": corpus.target}
        settings |= {f"references[{i}]": names for i, names in enumerate(corpus.references)}
        columns: dict[str, list[Path]] = {}
        missing = []
        for setting, names in settings.items():
            try:
                columns[setting] = locate_all(names, self.folder)
            except NotFoundError as error:
                missing.append(str(error))
        if missing:
            raise NotFoundError("\n".join(missing))
        counts = {setting: len(paths) for setting, paths in columns.items()}
        if len(set(counts.values())) > 1:
            listed = ", ".join(
                f"{self.table}.{setting} names {count} file{'' if count == 1 else 's'}"
                for setting, count in counts.items()
            )
            raise DataError(f"{listed}; these settings must name the same number of files")
        sources = (corpus.source, columns["source"])
        for setting, names in settings.items():
            _check_matches(sources, (names, columns[setting]), f"{self.table}.{setting}")
        return list(zip(*columns.values(), strict=True))


def _check_matches(
    source: tuple[FileNames, list[Path]], other: tuple[FileNames, list[Path]], setting: str
) -> None:
    """Raise a DataError if two files would form a pair although their names differ.

    For example, if *.de matches a.de and b.de, but *.en matches a.en and c.en, then b.de and c.en
    would form a pair. Only patterns with exactly one * and no other special character are checked.
    """
    for path, partner in zip(source[1], other[1], strict=True):
        texts = [_matched_text(source[0], path), _matched_text(other[0], partner)]
        if None not in texts and texts[0] != texts[1]:
            raise DataError(
                f"{setting}: {partner} would be paired with {path}, but * stands for '{texts[1]}' "
                f"in one name and for '{texts[0]}' in the other; add the missing file, or give a "
                "list of file names without *"
            )


def _matched_text(names: FileNames, path: Path) -> str | None:
    """Return the part of a path that the * of a pattern matches.

    Return None unless `names` is a single pattern with exactly one * and no other special
    character.
    """
    if not isinstance(names, str) or names.count("*") != 1 or re.search(r"[?\[]", names):
        return None
    start, end = names.split("*")
    match = re.search(f"{re.escape(start)}([^/]*){re.escape(end)}$", str(path))
    return match[1] if match else None


def _read_rows(paths: Sequence[Path]) -> Iterator[tuple[str | InvalidLine, ...]]:
    """Yield, for each line number, a tuple with this line of every file. Raise a DataError if the
    files have different numbers of lines."""
    rows = zip_longest(*(read_lines_or_problems(FilePart(path)) for path in paths))
    for number, row in enumerate(rows, start=1):
        if None in row:
            counts = [number - (line is None) for line in row]
            for rest in rows:
                counts = [n + (line is not None) for n, line in zip(counts, rest, strict=True)]
            raise different_line_counts(paths, counts)
        yield row


def _example(row: Sequence[str | InvalidLine], where: str) -> Example | InvalidLine:
    """Make an example from one line of each file. If a line is invalid, return this line instead.

    row: the line of the source file, of the target file, and of each reference file
    """
    texts = [line for line in row if isinstance(line, str)]
    for line in row:
        if isinstance(line, InvalidLine):
            return line
    source, target, *references = texts
    return Example(source, target, (target, *references), where)


def _refuse_lines_past_end(
    config: ParallelConfig, lines: int, sources: Sequence[Path], table: str
) -> None:
    """Raise a DataError if first_line or last_line is after the last line of the source files."""
    files, have = str(sources[0]), "has"
    if len(sources) > 1:
        files, have = f"{sources[0]} to {sources[-1]}", "together have"
    for name, line in (("first_line", config.first_line), ("last_line", config.last_line)):
        if line is not None and line > max(lines, 1):
            raise DataError(
                f"{files}: {have} {lines} lines, so {table}.{name} = {line} is past the end; "
                f"set it to {lines} or less"
            )


def different_line_counts(paths: Sequence[Path], counts: Sequence[int]) -> DataError:
    """Return the error to raise if files that belong together have different numbers of lines."""
    shortest = min(counts)
    longest = paths[counts.index(max(counts))]
    listed = ", ".join(f"{path} has {n} lines" for path, n in zip(paths, counts, strict=True))
    return DataError(
        f"{listed}: line {shortest + 1} of {longest} has no partner; the files must have the same "
        "number of lines. Check for a missing line or a line broken in two."
    )
