"""The kinds of corpora from which training, dev and test data can be read, one class for each."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.schema.section import PartConfig
from seqloom.extensions.registry import FORM, Point


def _as_names(value: Any) -> Any:
    """Convert a single string to a tuple. Return any other value unchanged."""
    return (value,) if isinstance(value, str) else value


def _as_pair(value: Any) -> Any:
    """Convert a list to a tuple. Return any other value unchanged."""
    return tuple(value) if isinstance(value, list) else value


def _check_file_names(value: Any) -> Any:
    """Check a file name or a list of file names. Return a list as a tuple."""
    names = value if isinstance(value, list | tuple) else [value]
    if not names:
        raise PydanticCustomError("too_short", "must not be empty")
    if not all(isinstance(name, str) for name in names):
        raise PydanticCustomError(
            "file_names", "must be a string in quotes or a list of such strings"
        )
    return value if isinstance(value, str) else tuple(names)


FileNames = Annotated[str | tuple[str, ...], BeforeValidator(_check_file_names)]
"""Name of a file, a pattern such as "corpus/*.tsv", or a list of names and patterns. All files
belong to one corpus."""


def list_file_names(names: FileNames) -> tuple[str, ...]:
    """Return the file names and patterns of a setting as a tuple."""
    return (names,) if isinstance(names, str) else names


def _common_suffix(names: FileNames) -> str:
    """Return the suffix that all files have, such as "de"; "" if their suffixes differ.

    Suffixes of compressed files and .txt are ignored: data/train.de.gz has the suffix "de".
    """
    suffixes = {_file_suffix(name) for name in list_file_names(names)}
    return suffixes.pop() if len(suffixes) == 1 else ""


def _file_suffix(path: str) -> str:
    """Return the last suffix except gz, zst and txt: data/train.de.gz -> de"""
    name = PurePath(path).name
    suffixes = [suffix for suffix in name.split(".")[1:] if suffix not in ("gz", "zst", "txt")]
    return suffixes[-1] if suffixes else ""


def _primary_subtag(language: str) -> str:
    """Return the language code without region or script: de-AT -> de"""
    return re.split("[-_]", language)[0].lower()


IMPORTED_TAG = re.compile(r">>(.+)<<|__(.+)__")
"""The language tags of Marian (>>de<<) and of M2M100 (__de__)."""


def language_tag(language: str) -> str:
    """Return the tag that selects a target language: de -> <2de>"""
    return f"<2{language}>"


def tag_display_name(tag: str) -> str:
    """Return the name by which users select a tag.

    For the tag of a language, this is the language: "de" for the tags <2de>, >>de<< and __de__ (the
    last two occur in imported models). For other tags, it is the tag itself.
    """
    language = tag.removeprefix("<2").removesuffix(">")
    if language and tag == language_tag(language):
        return language
    match = IMPORTED_TAG.fullmatch(tag)
    return tag if match is None else match[1] or match[2]


class SplitDataConfig(PartConfig):
    """Base class of everything that a split can list."""

    extension_point: ClassVar[str] = "reader"
    facts: ClassVar[tuple[str, ...]] = ("modality", "has_vectors")
    modality: ClassVar[str] = "text"
    """What the sources are: "text", "images", "frames", "series", or "none" for text without
    sources. `data/modalities/registry.py` has a class for each."""
    has_vectors: ClassVar[bool] = False
    """True if the sources are sequences of vectors, which are neither packed nor bucketed."""
    is_long_text: ClassVar[bool] = False
    """True if the data is one long text, not a list of separate examples."""


class TrainingDataConfig(SplitDataConfig):
    """Base class of everything that the training split can list."""

    def expand(self) -> "Sequence[CorpusConfig]":
        """Return the corpora for which this table stands."""
        raise NotImplementedError


class CorpusConfig(TrainingDataConfig):
    """Base class of all corpora: data that one reader reads. `builds` names the reader, a subclass of
    `data.readers.reader.Reader`."""

    is_generated: ClassVar[bool] = False
    """True if the examples are generated from few symbols, so that some are equal by chance."""

    def expand(self) -> "Sequence[CorpusConfig]":
        return [self]

    @property
    def training_problem(self) -> str | None:
        """Why the corpus cannot be trained on; None if it can."""
        return None

    @property
    def side_names(self) -> tuple[str, str] | None:
        """Names of the source and the target side in the data, such as the suffixes of its files.
        They are often the codes of the languages. None if the sides have no names."""
        return None


class TaggedCorpusConfig(CorpusConfig):
    """Settings shared by all corpora of text pairs. They are needed only if a recipe has several
    languages or tags."""

    tag: str | None = None
    """A token such as '<2de>' that selects the kind of output, for example the target language. If
    one corpus has a tag, all need one. Default: no tag."""
    name: str | None = None
    """Name of this corpus in reports, for example 'en-de'. If a corpus of a split has a name or a
    tag, the scores of each corpus of the split are reported too. Default: its tag."""


class ParallelConfig(TaggedCorpusConfig):
    """Two text files: line n of one is the translation of line n of the other. There can be
    several source files and as many target files."""

    builds: ClassVar[str] = "seqloom.data.readers.parallel_files:ParallelReader"
    kind: Literal["parallel"] = "parallel"
    source: FileNames
    """Path of the source file, a pattern such as "corpus/*.de", or a list of both. May be compressed
    with gzip or zstd."""
    target: FileNames
    """Path of the target file, a pattern such as "corpus/*.en", or a list of both. May be compressed
    with gzip or zstd. If there are several files, the first target file belongs to the first source file,
    and so on. The files of a pattern are sorted by name."""
    references: tuple[FileNames, ...] = ()
    """Paths of files with alternative targets that scoring also accepts. Each item is a path, a
    pattern or a list, like `target`. Default: []."""
    first_line: int = Field(1, ge=1)
    """First line to read, counted from 1, over all files. Default: 1."""
    last_line: int | None = Field(None, ge=1)
    """Last line to read, counted from 1, over all files. Default: the end of the files."""

    @property
    def side_names(self) -> tuple[str, str]:
        return _common_suffix(self.source), _common_suffix(self.target)

    @model_validator(mode="after")
    def _check_line_order(self) -> Self:
        if self.last_line is not None and self.last_line < self.first_line:
            raise ValueError(
                f"first_line {self.first_line} is after last_line {self.last_line}, so there is "
                "nothing to read; swap them, or raise last_line"
            )
        return self


class TsvConfig(TaggedCorpusConfig):
    """One file of tab-separated columns."""

    builds: ClassVar[str] = "seqloom.data.readers.delimited:TsvReader"
    kind: Literal["tsv"] = "tsv"
    path: FileNames
    """Path of the file, a pattern such as "corpus/*.tsv", or a list of both. May be compressed with
    gzip or zstd. The files of a pattern are sorted by name. All files count as one corpus."""
    source_column: int = Field(0, ge=0)
    """Column of the source, counted from 0. Default: 0."""
    target_column: int = Field(1, ge=0)
    """Column of the target, counted from 0. Default: 1."""
    reference_columns: tuple[int, ...] = ()
    """Columns with alternative targets that scoring also accepts. Default: []."""


class CsvConfig(TaggedCorpusConfig):
    """One file of comma-separated columns with a header line. Fields may be quoted."""

    builds: ClassVar[str] = "seqloom.data.readers.delimited:CsvReader"
    kind: Literal["csv"] = "csv"
    path: FileNames
    """Path of the file, a pattern such as "corpus/*.csv", or a list of both. May be compressed with
    gzip or zstd. The files of a pattern are sorted by name. All files count as one corpus."""
    source: str = "source"
    """Name of the source column. Default: "source"."""
    target: str = "target"
    """Name of the target column. Default: "target"."""
    references: tuple[str, ...] = ()
    """Names of columns with alternative targets that scoring also accepts. Default: []."""


class RecordsConfig(TaggedCorpusConfig):
    """Settings shared by all corpora that consist of records with named fields.

    Source and target are fields of the record itself, or of its field "translation", as in
    {"translation": {"de": …, "en": …}}. A target may be a list of texts: training uses the first
    text, scoring accepts all of them.
    """

    source: str = "source"
    """Name of the source field, in the record itself or in its "translation". Default: "source"."""
    source_fallback: str | None = None
    """Name of the field that is read if the source is missing or null. Default: no such field."""
    source_joiner: str | None = None
    """String to put between the items of a source that is a list. Default: lists are not
    accepted."""
    target: str = "target"
    """Name of the target field, in the record itself or in its "translation". Default: "target"."""

    @property
    def side_names(self) -> tuple[str, str]:
        prefix = "translation."
        return self.source.removeprefix(prefix), self.target.removeprefix(prefix)


class JsonlConfig(RecordsConfig):
    """One JSON object per line: {"src": …, "tgt": …} or {"translation": {"de": …, "en": …}}.

    A target may be a list of texts: training uses the first text, scoring accepts all of them.
    """

    builds: ClassVar[str] = "seqloom.data.readers.records:JsonlReader"
    kind: Literal["jsonl"] = "jsonl"
    path: FileNames
    """Path of the file, a pattern such as "corpus/*.jsonl", or a list of both. May be compressed with
    gzip or zstd. The files of a pattern are sorted by name. All files count as one corpus."""
    source: str = "src"
    """Key of the source, in the object itself or in its "translation". Default: "src"."""
    target: str = "tgt"
    """Key of the target, in the object itself or in its "translation". Default: "tgt"."""


class ParquetConfig(RecordsConfig):
    """Parquet files with a column for each field. Needs the extra `parquet`. A column "translation"
    may hold the texts of all languages, as in many data sets on the Hugging Face Hub."""

    builds: ClassVar[str] = "seqloom.data.readers.tables:ParquetReader"
    kind: Literal["parquet"] = "parquet"
    path: FileNames
    """Path of the file, a pattern such as "corpus/*.parquet", or a list of both. The files of a
    pattern are sorted by name. All files count as one corpus."""


class ArrowConfig(RecordsConfig):
    """A data set that `save_to_disk` of the package `datasets` wrote. Needs the extra `parquet`."""

    builds: ClassVar[str] = "seqloom.data.readers.tables:ArrowReader"
    kind: Literal["arrow"] = "arrow"
    path: FileNames
    """Path of the folder of one split, such as "dataset/train", or of an Arrow file, a pattern, or a
    list of them. All files count as one corpus."""


class TmxConfig(TaggedCorpusConfig):
    """A translation memory in the format TMX 1.4. Each translation unit is an example.

    Formatting codes inside a text are removed: the elements bpt, ept, it, ph and ut with their
    content. Other elements, such as hi, are removed, but their text is kept.
    """

    builds: ClassVar[str] = "seqloom.data.readers.tmx:TmxReader"
    kind: Literal["tmx"] = "tmx"
    path: FileNames
    """Path of the file, a pattern such as "corpus/*.tmx", or a list of both. May be compressed with
    gzip or zstd. The files of a pattern are sorted by name. All files count as one corpus."""
    source: str = Field(min_length=1)
    """Code of the source language. "de" also selects texts in de-AT or DE-CH. If a unit has several
    such texts, those in exactly this language come first, and the first text is used."""
    target: str = Field(min_length=1)
    """Code of the target language, like `source`. If a unit has several such texts, training uses the
    first one, and scoring accepts all of them."""

    @property
    def side_names(self) -> tuple[str, str]:
        return _primary_subtag(self.source), _primary_subtag(self.target)

    @model_validator(mode="after")
    def _check_languages(self) -> Self:
        if self.source.lower() == self.target.lower():
            raise ValueError(
                f"source and target are both '{self.source}'; choose two different languages"
            )
        return self


class LinesConfig(CorpusConfig):
    """Plain text with one sentence per line, for models without a source."""

    builds: ClassVar[str] = "seqloom.data.readers.plain_text:LinesReader"
    modality: ClassVar[str] = "none"
    kind: Literal["lines"] = "lines"
    path: FileNames
    """Path of the file, a pattern such as "corpus/*.txt", or a list of both. May be compressed with
    gzip or zstd. The files of a pattern are sorted by name. All files count as one corpus."""


class CaptionsConfig(CorpusConfig):
    """Images, each with one or several captions.

    A line of `captions` is name<TAB>caption. A number after the name, as in dog.jpg#3, is ignored.
    """

    builds: ClassVar[str] = "seqloom.data.modalities.images:CaptionsReader"
    modality: ClassVar[str] = "images"
    kind: Literal["captions"] = "captions"
    images: Annotated[tuple[str, ...], BeforeValidator(_as_names), Field(min_length=1)]
    """Paths of folders, zip or tar files with the images."""
    captions: str
    """Path of the file with the captions. May be compressed with gzip or zstd."""
    names: str | None = None
    """Path of a file with the names of the images to use, one per line. Default: all images that
    have a caption."""


class ScenesConfig(CorpusConfig):
    """Generated images of two coloured shapes, with captions such as "a red circle above a blue
    square". No caption of dev or test occurs in training."""

    builds: ClassVar[str] = "seqloom.data.readers.generated.scenes:ScenesReader"
    modality: ClassVar[str] = "images"
    kind: Literal["scenes"] = "scenes"
    examples: int = Field(gt=0)
    """Number of images to generate."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of the generator. Default: 0."""


class FramesConfig(CorpusConfig):
    """Sequences of real-valued vectors (frames) with labels, in a CSV file with a header line and one
    row per frame. The rows of a sequence follow each other."""

    builds: ClassVar[str] = "seqloom.data.modalities.frames:FramesReader"
    modality: ClassVar[str] = "frames"
    has_vectors: ClassVar[bool] = True
    kind: Literal["frames"] = "frames"
    path: FileNames
    """Path of the file, a pattern such as "corpus/*.csv", or a list of both. May be compressed with
    gzip or zstd. The files of a pattern are sorted by name. All files count as one corpus."""
    sequence: str = "sequence"
    """Name of the column that says which sequence a row belongs to. Default: "sequence"."""
    label: str = "label"
    """Name of the column with the label. Default: "label"."""
    columns: Annotated[tuple[str, ...], BeforeValidator(_as_names)] = ()
    """Names of the columns with the numbers of a frame. Default: all other columns."""
    labels: Literal["frame", "sequence"] = "frame"
    """What has a label: each frame, or the whole sequence. In the second case, all rows of a sequence
    must have the same label. Default: "frame"."""

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        names = (self.sequence, self.label, *self.columns)
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(
                f"{', '.join(repeated)}: each column can be used only once among sequence, label "
                "and columns; remove the repetition"
            )
        return self


class GesturesConfig(CorpusConfig):
    """Generated movements of a hand. A frame is the noisy velocity of the hand (two numbers), and the
    label is the gesture: left-circle, right-circle, wave or rest. One frame does not show in which
    direction a circle turns, so a model needs several frames."""

    builds: ClassVar[str] = "seqloom.data.readers.generated.gestures:GesturesReader"
    modality: ClassVar[str] = "frames"
    has_vectors: ClassVar[bool] = True
    kind: Literal["gestures"] = "gestures"
    labels: Literal["frame", "sequence"] = "frame"
    """What has a label. "frame": each frame, in a sequence of several gestures. "sequence": the whole
    sequence, which is a single gesture. Default: "frame"."""
    examples: int = Field(gt=0)
    """Number of sequences to generate."""
    min_frames: int = Field(20, ge=1)
    """Minimum number of frames of a sequence. Default: 20."""
    max_frames: int = Field(40, ge=1)
    """Maximum number of frames of a sequence. Default: 40."""
    noise: float = Field(0.5, ge=0)
    """Standard deviation of the noise on each number. The speed of a moving hand is about 1.
    Default: 0.5."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of the generator. Default: 0."""

    @model_validator(mode="after")
    def _check_frame_order(self) -> Self:
        if self.min_frames > self.max_frames:
            raise ValueError(
                f"min_frames {self.min_frames} is above max_frames {self.max_frames}; swap them"
            )
        return self


class ForecastCorpusConfig(CorpusConfig):
    """Base class of corpora of numbers to forecast."""

    modality: ClassVar[str] = "series"

    @property
    def column_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the columns to forecast and of the context columns. Default: x and y, without
        context."""
        return ("x", "y"), ()


class SeriesConfig(ForecastCorpusConfig):
    """A time series in a CSV file with a header line and one row per time step.

    An example is a window of consecutive rows: task.observe rows to read, then task.predict rows to
    forecast.
    """

    builds: ClassVar[str] = "seqloom.data.modalities.series:TableReader"
    kind: Literal["series"] = "series"
    path: str
    """Path of the file. May be compressed with gzip or zstd."""
    columns: Annotated[tuple[str, ...], BeforeValidator(_as_names), Field(min_length=1)]
    """Names of the columns to forecast."""
    context: Annotated[tuple[str, ...], BeforeValidator(_as_names)] = ()
    """Names of columns whose values are known in advance, also for the rows to forecast. The decoder
    reads them at every step. Default: []."""
    rows: Annotated[tuple[int, int] | None, BeforeValidator(_as_pair)] = None
    """Range [first, last) of the rows to forecast: `last` is not included. Rows are counted from 0
    without the header. The rows to read may start before the range. Default: all rows."""
    stride: int = Field(1, ge=1)
    """Number of rows from the start of one example to the next. Default: 1."""

    @property
    def column_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.columns, self.context


class TracksConfig(ForecastCorpusConfig):
    """Recordings of pedestrians. Each line has a frame, the pedestrian's id, and the position x, y."""

    builds: ClassVar[str] = "seqloom.data.modalities.series:TracksReader"
    kind: Literal["tracks"] = "tracks"
    recordings: Annotated[tuple[str, ...], BeforeValidator(_as_names)] = ()
    """Paths of the files. Give either this or `scene`. Default: []."""
    scene: str | None = None
    """Name of the scene to leave out of training; its recordings are the test split. The file
    `splits` lists the recordings of each split. Give either this or `recordings`. Default: none."""
    splits: str = "splits.json"
    """Path of a JSON file that lists the recordings of the three splits for each scene. Default:
    "splits.json"."""
    min_pedestrians: int = Field(2, ge=1)
    """Minimum number of pedestrians who are present in all frames of a window. Windows with fewer are
    not used. Default: 2."""

    @model_validator(mode="after")
    def _check_recordings_or_scene(self) -> Self:
        if bool(self.recordings) == (self.scene is not None):
            raise ValueError("set exactly one of the two settings recordings and scene")
        return self


class RobotConfig(ForecastCorpusConfig):
    """Generated paths of a robot with two wheels. A model forecasts the position x, y of the robot.
    At each step, the model also reads the measured speeds of the left and of the right wheel (the
    context). The direction of the robot is not given: a model has to infer it from the observed
    positions."""

    builds: ClassVar[str] = "seqloom.data.modalities.series:RobotReader"
    kind: Literal["robot"] = "robot"
    examples: int = Field(gt=0)
    """Number of paths to generate."""
    noise: float = Field(0.02, ge=0)
    """Standard deviation of the noise on each measured position and speed. A wheel moves at most 1 per
    step. Default: 0.02."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of the generator. Default: 0."""

    @property
    def column_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return ("x", "y"), ("left", "right")


Language = Literal["de", "en", "fr"]
"""Languages of the bundled sentences."""


class LongTextConfig(CorpusConfig):
    """One long text, for models without a source. The file is a single sequence of tokens, in which
    each newline is a token. Models read it in windows of fixed length. Several files are joined to
    one text."""

    builds: ClassVar[str] = "seqloom.data.readers.plain_text:LongTextReader"
    modality: ClassVar[str] = "none"
    is_long_text: ClassVar[bool] = True
    kind: Literal["long-text"] = "long-text"
    path: FileNames
    """Path of the file, a pattern such as "corpus/*.txt", or a list of both. May be compressed with
    gzip or zstd. The files of a pattern are sorted by name. All files count as one corpus."""
    begin: float = Field(0.0, ge=0, lt=1)
    """Start of the text, as a fraction of the characters of all files. The text starts at the first line
    that begins at this point or later. Default: 0.0."""
    end: float = Field(1.0, gt=0, le=1)
    """End of the text, as a fraction of the characters of all files. The text ends with the last line
    that begins before this point. So a train split with end = 0.9 and a dev split with begin = 0.9
    have no line in common. Default: 1.0."""
    length: int = Field(256, ge=1)
    """Number of tokens of a window. Default: 256."""
    context: int | None = Field(None, ge=0)
    """Number of tokens at the start of a window that serve as context only, because the previous
    window predicts them. Default: 0 in training, half a window in scoring."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.begin >= self.end:
            raise ValueError(
                f"begin = {self.begin} must be below end = {self.end}; make begin smaller"
            )
        if self.context is not None and self.context >= self.length:
            raise ValueError(
                f"context = {self.context} leaves nothing to predict in a window of length "
                f"{self.length}; make context smaller or length larger"
            )
        return self


class BundledConfig(TaggedCorpusConfig):
    """Short everyday sentences from Tatoeba that come with seqloom (CC BY 2.0)."""

    builds: ClassVar[str] = "seqloom.data.readers.bundled:BundledReader"
    kind: Literal["bundled"] = "bundled"
    source: Language
    """Source language. The pairs are German and English, English and French and, in dev and test
    only, German and French."""
    target: Language
    """Target language, different from the source language."""

    @property
    def side_names(self) -> tuple[str, str]:
        return self.source, self.target

    @property
    def training_problem(self) -> str | None:
        if not self.is_joined:
            return None
        return (
            "the bundled German and French sentences are joined by their English translation, to "
            "test languages that were never paired; train on pairs with 'en', and use German and "
            "French in data.dev or data.test"
        )

    @property
    def is_joined(self) -> bool:
        """True if the two languages are German and French.

        The bundled files have no pairs of these languages. A pair is made of a German and a French
        sentence that have the same English translation.
        """
        return "en" not in (self.source, self.target)

    @model_validator(mode="after")
    def _check_languages(self) -> Self:
        if self.source == self.target:
            raise ValueError(
                f"source and target are both '{self.source}'; choose two different languages"
            )
        return self


class BundledLabelsConfig(CorpusConfig):
    """The bundled Tatoeba sentences (CC BY 2.0), each once, with labels to predict: the language of
    the sentence, or which of its letters are capitals."""

    builds: ClassVar[str] = "seqloom.data.readers.bundled:BundledLabelsReader"
    kind: Literal["bundled-labels"] = "bundled-labels"
    labels: Literal["language", "capitals"]
    """Labels to predict. "language": one label, the language of the sentence. "capitals": the source
    is the lowercased sentence, and each character has the label U if it was a capital, otherwise
    l."""
    languages: Annotated[tuple[Language, ...], Field(min_length=1)] = ("de", "en", "fr")
    """Languages to take sentences from. Default: ["de", "en", "fr"]."""

    @model_validator(mode="after")
    def _check_languages(self) -> Self:
        if self.labels == "language" and len(set(self.languages)) < 2:
            raise ValueError(
                "labels = 'language' needs two languages or more to distinguish; list them in "
                "languages"
            )
        return self


MAX_FACTS = 9
"""Maximum number of sentences before a question. Their numbers, 1 to 9, are all different."""


class SyntheticConfig(CorpusConfig):
    """Generated pairs of source and target for a simple task, such as reversing a string. The
    training, dev and test data of a recipe never share a source."""

    builds: ClassVar[str] = "seqloom.data.readers.generated.synthetic:SyntheticReader"
    is_generated: ClassVar[bool] = True
    kind: Literal["synthetic"] = "synthetic"
    task: Literal["copy", "reverse", "sort", "addition", "case", "questions"]
    """Task: "copy", "reverse" and "sort" transform strings of letters, "addition" maps "12+7" to
    "19", "case" maps "<U> I am" to "I AM", "questions" maps "Anna has 3 apples. What does Anna
    have?" to "Anna has apples."."""
    examples: int = Field(gt=0)
    """Number of pairs to generate."""
    min_length: int = Field(1, ge=1)
    """Minimum number of letters (copy, reverse, sort), digits (addition), characters (case) or
    sentences before the question (questions). Default: 1."""
    max_length: int = Field(10, ge=1)
    """Maximum number of letters (copy, reverse, sort), digits (addition), characters (case) or
    sentences before the question (questions, at most 9). Default: 10."""
    symbols: int = Field(26, ge=2, le=26)
    """Number of different letters (copy, reverse, sort). Default: 26."""
    part: Literal["start", "any"] = "start"
    """Part of a sentence to use (case): its first words, or words from any place. "any" gives many
    more different short texts. Default: "start"."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of the generator. Default: 0."""

    @model_validator(mode="after")
    def _check_length_order(self) -> Self:
        if self.min_length > self.max_length:
            raise ValueError(
                f"min_length {self.min_length} is above max_length {self.max_length}; swap them"
            )
        if self.task != "case" and self.part != "start":
            raise ValueError(
                f"part = '{self.part}' applies only to task = 'case', not to '{self.task}'; remove it"
            )
        if self.task == "questions" and self.max_length > MAX_FACTS:
            raise ValueError(
                f"max_length {self.max_length} is too large for task = 'questions': a story has at "
                f"most {MAX_FACTS} sentences, one for each number from 1 to {MAX_FACTS}; set "
                f"max_length = {MAX_FACTS} or less"
            )
        return self


class ImportedConfig(TaggedCorpusConfig):
    """Placeholder for the training data of a model that was imported with `seqloom import`. This
    data is not available, so commands that need it report an error."""

    builds: ClassVar[str] = "seqloom.data.readers.reader:ImportedReader"
    kind: Literal["imported"] = "imported"
    source: str | None = None
    """Code of the source language, such as "en". Default: not known."""
    target: str | None = None
    """Code of the target language, such as "de". Default: not known."""
    tags: tuple[str, ...] = ()
    """Tags of the target languages, for multilingual models. Default: []."""

    def expand(self) -> "list[ImportedConfig]":
        """Return one corpus for each tag, which selects a target language."""
        if not self.tags:
            return [self]
        corpora = []
        for tag in self.tags:
            target = tag_display_name(tag)
            name = None if self.source is None else f"{self.source}-{target}"
            corpora.append(ImportedConfig(source=self.source, target=target, tag=tag, name=name))
        return corpora

    @property
    def side_names(self) -> tuple[str, str] | None:
        return None if self.source is None or self.target is None else (self.source, self.target)


class HoldOutConfig(SplitDataConfig):
    """Pairs that are held out of the training corpora, so that training does not use them. Only the
    source text decides whether a pair is held out, so all translations of a sentence are in the
    same split."""

    builds: ClassVar[str] = ""  # no reader: other corpora are read
    kind: Literal["hold-out"] = "hold-out"
    fraction: float = Field(0.02, gt=0, lt=0.5)
    """Share of the training pairs to hold out. Default: 0.02."""


class ReaderExtensionConfig(ExtensionConfig, TaggedCorpusConfig):
    """A corpus in a format that seqloom does not know. The reader is outside seqloom: a function
    that yields pairs of source and target, or a subclass of `seqloom.data.Reader`."""

    builds: ClassVar[str] = FORM
    extension_point: ClassVar[Point] = "reader"


CorpusOrHoldOutConfig = CorpusConfig | HoldOutConfig
"""One corpus, or pairs held out of the training corpora."""

LANGUAGE = "{language}"
"""Placeholder for a language in `LanguagesConfig.path`."""
PAIR = "{pair}"
"""Placeholder for a pair of languages in `LanguagesConfig.path`."""


class LanguagesConfig(TrainingDataConfig):
    """Files of several languages, and the pairs of languages to translate between. Each source text
    gets a tag that names the target language, such as '<2de>' for German."""

    builds: ClassVar[str] = ""  # no reader: other corpora are read
    kind: Literal["languages"] = "languages"
    path: str
    """Path of the files, in which '{language}' stands for the language: 'train.{language}.gz'. If
    each pair has its own files, '{pair}' stands for its languages in alphabetical order:
    'train.{pair}.{language}'. A pattern such as 'news/*.{language}' stands for several files."""
    pairs: Annotated[tuple[str, ...], Field(min_length=1)]
    """Pairs of source and target language, for example ["en-de", "de-en"]."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = [
            f"pairs: '{pair}' is not a pair of languages; it must have the form 'en-de'"
            for pair in self.pairs
            if not re.fullmatch(r"[^\W_][^\s<>{}-]*-[^\W_][^\s<>{}-]*", pair)
        ]
        duplicates = [pair for pair, count in Counter(self.pairs).items() if count > 1]
        problems += [f"pairs: '{pair}' is given twice; remove one" for pair in duplicates]
        unknown_fields = set(re.findall(r"{[^}]*}?", self.path)) - {LANGUAGE, PAIR}
        if unknown_fields or LANGUAGE not in self.path:
            problems.append(
                f"path: '{self.path}' must contain '{LANGUAGE}', for example 'train.{LANGUAGE}.gz'; "
                f"'{PAIR}' is the only other field allowed in braces"
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def expand(self) -> list[ParallelConfig]:
        """Return one parallel corpus per pair of languages, tagged with its target language."""
        corpora = []
        for pair in self.pairs:
            source, target = pair.split("-")
            corpora.append(
                ParallelConfig(
                    source=self.file_of(pair, source),
                    target=self.file_of(pair, target),
                    tag=language_tag(target),
                    name=pair,
                )
            )
        return corpora

    def file_of(self, pair: str, language: str) -> str:
        """Return the path of the file that contains the sentences of `pair` in `language`."""
        sorted_pair = "-".join(sorted(pair.split("-")))
        return self.path.replace(LANGUAGE, language).replace(PAIR, sorted_pair)
