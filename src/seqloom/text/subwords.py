"""Subword tokenizers, trained with sentencepiece."""

import hashlib
import io
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, TypeVar

import sentencepiece

from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.core.storage import write_file
from seqloom.text.tokenizer import (
    SPACE,
    Tags,
    content_digest,
    damaged_file_error,
    word_indices,
    write_content,
)
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

MAX_SENTENCES = 2_000_000
"""Maximum number of lines to train on, which limits memory. If there are more lines, sentencepiece
uses a random sample of them."""
MAX_BYTES = 1_000_000
"""Maximum length of a training line in bytes. sentencepiece would skip longer lines, but the data
readers reject them first."""

_BLANKS = re.compile(r"[ \t\n\r\v\f]+")

Result = TypeVar("Result")


class SubwordTokenizer:
    """Splits text into pieces that are learned with byte-pair encoding or a unigram model (Kudo and
    Richardson 2018).

    Every character of the training lines is a piece, so only other characters are UNKNOWN. For a
    text x of known characters, decode(encode(x)) == x with these exceptions:

    - each run of white space becomes one space
    - white space at both ends is removed
    - the character ▁ becomes a space, because it stands for a space inside a piece
    - the text is lowercased if `lowercase` is set
    """

    kind: ClassVar[str] = "subwords"

    def __init__(self, model: bytes, tags: Tags, lowercase: bool) -> None:
        """`model` is a serialised sentencepiece model."""
        self.model = model
        self.tags = tags
        self.lowercase = lowercase
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._names = [self._processor.id_to_piece(id_) for id_ in range(self.size)]

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        tags: Tags,
        lowercase: bool,
        size: int,
        algorithm: Literal["bpe", "unigram"],
    ) -> "SubwordTokenizer":
        """Learn a vocabulary from these lines. The same lines always give the same vocabulary.

        At most MAX_SENTENCES lines are held in memory.

        size: maximum size of the vocabulary, including special tokens and tags. The vocabulary is
              smaller if the lines do not yield as many pieces
        """
        model = io.BytesIO()
        errors: list[BaseException] = []

        def sentences() -> Iterator[str]:
            try:
                yield from _normalised_lines(lines, tags, lowercase)
            except BaseException as error:
                # sentencepiece replaces an error of its iterator by a RuntimeError.
                errors.append(error)
                raise

        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=sentences(),
                model_writer=model,
                vocab_size=size,
                hard_vocab_limit=False,  # little text yields fewer pieces
                model_type=algorithm,
                pad_id=PAD,
                bos_id=START,
                eos_id=END,
                unk_id=UNKNOWN,
                user_defined_symbols=list(tags.names),
                character_coverage=1.0,
                byte_fallback=False,
                normalization_rule_name="identity",
                input_sentence_size=MAX_SENTENCES,
                shuffle_input_sentence=True,
                max_sentence_length=MAX_BYTES,
                num_threads=16,  # stored in the model file, so use the same number on all machines
                minloglevel=4,
            )
        except RuntimeError as error:
            if errors:
                raise errors[0] from None
            _raise_training_error(error, size)
        return cls(model.getvalue(), tags, lowercase)

    @classmethod
    def load(cls, path: Path, content: dict[str, Any]) -> "SubwordTokenizer":
        """Load a tokenizer.

        path:    path of the sentencepiece model
        content: content of the tokenizer's JSON file
        """
        try:
            model = path.read_bytes()
        except OSError as error:
            raise NotFoundError(f"{path}: cannot be read: {error.strerror or error}") from error
        if hashlib.sha256(model).hexdigest() != content["sha256"]:
            raise damaged_file_error(path)
        return cls(model, Tags(content["tags"]), content["lowercase"])

    def _content(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "lowercase": self.lowercase,
            "tags": list(self.tags.names),
            "sha256": hashlib.sha256(self.model).hexdigest(),
        }

    @property
    def size(self) -> int:
        return self._processor.get_piece_size()

    @property
    def digest(self) -> str:
        return content_digest(self._content())

    def piece_id(self, piece: str) -> int:
        """Return the id of a piece; UNKNOWN if the vocabulary does not have it."""
        return self._processor.piece_to_id(piece)

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(self._utf8(text))

    def _utf8(self, text: str) -> bytes:
        """Normalise a text and convert it to UTF-8, which sentencepiece expects."""
        try:
            return _normalise(text, self.tags, self.lowercase).encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"{text!r}: is not valid Unicode: it contains half of a surrogate pair"
            ) from error

    def _surfaces(self, ids: Sequence[int]) -> list[str]:
        return ["" if id_ < UNKNOWN else self._names[id_].replace(SPACE, " ") for id_ in ids]

    def decode(self, ids: Sequence[int]) -> str:
        # Remove the space that sentencepiece adds before the first word in order to encode this
        # word like any other.
        return "".join(self._surfaces(ids)).removeprefix(" ")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._names[id_] for id_ in ids]

    def word_of(self, ids: Sequence[int]) -> list[int]:
        return word_indices(self._surfaces(ids))

    def save(self, folder: Path, name: str) -> None:
        write_file(folder / f"{name}.model", self.model)
        write_content(folder / f"{name}.json", self._content())


def _normalise(text: str, tags: Tags, lowercase: bool) -> str:
    return _BLANKS.sub(" ", tags.lower(text) if lowercase else text)


def _normalised_lines(lines: Iterable[str], tags: Tags, lowercase: bool) -> Iterator[str]:
    for line in lines:
        yield _normalise(line, tags, lowercase)


def _raise_training_error(error: RuntimeError, size: int) -> NoReturn:
    """Raise a ConfigError that explains why sentencepiece could not train.

    If the size of the vocabulary is the cause, the message says which setting to change.

    error: the error that sentencepiece raised
    size:  the size of the vocabulary that the recipe asks for
    """
    message = str(error)
    setting = "text.tokenizer.size (or text.target_tokenizer.size, if it is set)"
    if match := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        raise ConfigError(
            f"a vocabulary of {size} subwords is too small: the special tokens, tags and single "
            f"characters of the training text alone are {match[1]}; set {setting} well above that"
        ) from error
    raise ConfigError(f"sentencepiece cannot learn from the training text: {message}") from error


class SampledSubwordTokenizer(SubwordTokenizer):
    """A subword tokenizer whose `encode` samples one of the possible segmentations of a text.

    With BPE, each merge is skipped with probability `alpha` (Provilkov et al. 2020). With a unigram
    model, a segmentation of probability p is sampled in proportion to p^alpha (Kudo 2018). Every
    segmentation decodes to the same text.
    """

    def __init__(self, tokenizer: SubwordTokenizer, alpha: float, seed: int) -> None:
        """`seed` becomes part of `digest`. It does not seed the sampling.

        To seed the sampling, call `encode` inside `run_with_sampling_seed`.
        """
        super().__init__(tokenizer.model, tokenizer.tags, tokenizer.lowercase)
        self.alpha = alpha
        self.seed = seed

    @property
    def digest(self) -> str:
        drawn = [self.alpha, self.seed, sentencepiece.__version__]
        return content_digest({"plain": super().digest, "drawn": drawn})

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(
            self._utf8(text), enable_sampling=True, alpha=self.alpha, nbest_size=-1
        )


_seed_lock = threading.Lock()


def run_with_sampling_seed(seed: int, work: Callable[[], Result]) -> Result:
    """Run `work` and return its result. `seed` determines which segmentations `work` samples.

    sentencepiece has one random generator per thread. It seeds this generator only once, when the
    thread samples for the first time. So `work` runs in a new thread.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again in the calling thread
            errors.append(error)

    with _seed_lock:
        sentencepiece.set_random_generator_seed(seed % 2**32)
        thread = threading.Thread(target=run, name="seqloom-sampling")
        thread.start()
        thread.join()
    if errors:
        raise errors[0]
    return results[0]
