"""Subword tokenizers, trained with sentencepiece."""

import hashlib
import io
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, TypeVar

import sentencepiece

from seqloom.core.errors import ConfigError, DataError
from seqloom.core.storage import write_file
from seqloom.text.preprocessing import SPACE, Preprocessing, normalise
from seqloom.text.tokenizer import (
    Tokenizer,
    content_digest,
    read_model,
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
_BYTE_NAME = re.compile("<0x[0-9A-F]{2}>")
"""Name of the piece for a byte in a sentencepiece model."""
REPLACEMENT = "\ufffd"
"""Replacement character. It stands for a byte that is not part of a UTF-8 character."""

Result = TypeVar("Result")


class SubwordTokenizer:
    """Splits text into pieces that are learned with byte-pair encoding or a unigram model (Kudo and
    Richardson 2018).

    Every character of the training lines is a piece. Other characters are UNKNOWN or, with byte
    fallback, are encoded as their UTF-8 bytes. For a text x without UNKNOWN, decode(encode(x)) is
    the preprocessed x with these exceptions:

    - each run of white space becomes one space
    - white space at both ends is removed
    - the character ▁ becomes a space, because it stands for a space inside a piece
    """

    kind: ClassVar[str] = "subwords"
    unknown_unit: ClassVar[Literal["character", "word"]] = "character"

    def __init__(self, model: bytes, preprocessing: Preprocessing) -> None:
        """Load a sentencepiece model.

        model:         the serialised sentencepiece model
        preprocessing: applied to each text before it is split
        """
        self.model = model
        self.preprocessing = preprocessing
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._last_encoded: tuple[str, list[int]] = ("", [])
        self._names = [self._processor.id_to_piece(id_) for id_ in range(self.size)]
        self._surface_of = [
            "" if id_ < UNKNOWN else name.replace(SPACE, " ")
            for id_, name in enumerate(self._names)
        ]
        """Text of each token that is not a byte."""
        self._bytes = {
            id_: int(name[1:-1], 16)
            for id_, name in enumerate(self._names)
            if self._processor.is_byte(id_)
        }

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        preprocessing: Preprocessing,
        size: int,
        algorithm: Literal["bpe", "unigram"],
        byte_fallback: bool = False,
    ) -> "SubwordTokenizer":
        """Learn a vocabulary from these lines. The same lines always give the same vocabulary.

        If there are more than MAX_SENTENCES lines, sentencepiece learns from a random sample of
        this number of lines, to limit memory.

        size:          maximum size of the vocabulary, including special tokens, tags and pieces for
                       bytes. The vocabulary is smaller if the lines yield fewer pieces
        byte_fallback: add 256 pieces for bytes, so that every character can be encoded
        """
        byte_names = [name for name in preprocessing.tags.names if _BYTE_NAME.fullmatch(name)]
        if byte_fallback and byte_names:
            raise ConfigError(
                f"text.tags: {byte_names[0]!r} is the name of a byte, because text.byte_fallback = "
                "true; choose another name for this tag"
            )
        model = io.BytesIO()
        errors: list[BaseException] = []

        def sentences() -> Iterator[str]:
            try:
                yield from _prepared_lines(lines, preprocessing)
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
                user_defined_symbols=list(preprocessing.tags.names),
                character_coverage=1.0,
                byte_fallback=byte_fallback,
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
            _raise_training_error(error, size, byte_fallback)
        return cls(model.getvalue(), preprocessing)

    @classmethod
    def load(cls, path: Path, content: dict[str, Any]) -> "SubwordTokenizer":
        """Load a tokenizer.

        path:    path of the sentencepiece model
        content: content of the tokenizer's JSON file
        """
        model = read_model(path, content)
        return cls(model, Preprocessing.from_content(content))

    def _content(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self.preprocessing.content(),
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
        # A text is often encoded twice in succession, first to look for unknown characters.
        last_text, ids = self._last_encoded
        if text != last_text:
            ids = self._processor.encode(self._utf8(text))
            self._last_encoded = (text, ids)
        return list(ids)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text. Faster than calling `encode` for each text."""
        prepared = self._utf8_of_plain_texts(texts) or [self._utf8(text) for text in texts]
        return self._processor.encode(prepared, num_threads=1)

    def unknown(self, text: str) -> list[str]:
        encoded = self._utf8(text)
        ids = self._processor.encode(encoded)
        if UNKNOWN not in ids:
            return []
        # As strings, sentencepiece returns unknown characters as they are. Adjacent ones are one
        # string.
        pieces = self._processor.encode(encoded, out_type=str)
        return [
            character
            for id_, piece in zip(ids, pieces, strict=True)
            if id_ == UNKNOWN
            for character in piece
        ]

    def _utf8_of_plain_texts(self, texts: Sequence[str]) -> list[bytes] | None:
        """Preprocess all texts at once and convert them to UTF-8. Faster than one text at a time.

        This is only possible if the texts need no preprocessing except Unicode normalisation.
        Returns None if they need more, for example if a text contains a tab or two adjacent spaces.
        """
        if self.preprocessing.tags.names or self.preprocessing.lowercase:
            return None
        # A line break is not composed with other characters, so normalising the joined texts is the
        # same as normalising each of them.
        joined = normalise("\n".join(texts), self.preprocessing.normalization)
        has_blanks = "  " in joined or not joined.replace("\n", "").isprintable()
        if has_blanks or joined.count("\n") != len(texts) - 1:
            return None
        return joined.encode("utf-8").split(b"\n")

    def _utf8(self, text: str) -> bytes:
        """Preprocess a text and convert it to UTF-8, which sentencepiece expects."""
        try:
            return _prepare(text, self.preprocessing).encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"{text!r}: is not valid Unicode: it contains half of a surrogate pair"
            ) from error

    def _surfaces(self, ids: Sequence[int]) -> Iterator[tuple[str, int]]:
        """Yield the decoded text in parts, each with the number of tokens that encode this part.

        The number is 1, except for a character that is encoded as several bytes.
        """
        for is_byte, group in groupby(ids, self._bytes.__contains__):
            if is_byte:
                yield from _decode_bytes(bytes(self._bytes[id_] for id_ in group))
            else:
                for id_ in group:
                    yield self._surface_of[id_], 1

    def decode(self, ids: Sequence[int]) -> str:
        # sentencepiece adds a space before the first word, in order to encode this word like any
        # other. A model can also generate the piece of a space as its first or last token.
        if self._bytes.keys().isdisjoint(ids):  # most texts, and several times faster
            return "".join([self._surface_of[id_] for id_ in ids]).strip(" ")
        return "".join(surface for surface, _ in self._surfaces(ids)).strip(" ")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._names[id_] for id_ in ids]

    def word_of(self, ids: Sequence[int]) -> list[int]:
        surfaces = list(self._surfaces(ids))
        indices = word_indices(surface for surface, _ in surfaces)
        return [
            index for index, (_, count) in zip(indices, surfaces, strict=True) for _ in range(count)
        ]

    def save(self, folder: Path, name: str) -> None:
        write_file(folder / f"{name}.model", self.model)
        write_content(folder / f"{name}.json", self._content())


def _prepare(text: str, preprocessing: Preprocessing) -> str:
    text = preprocessing.apply(text)
    # Most texts have only single spaces, and this test takes a fraction of the time of the
    # substitution. Tabs and line endings are not printable.
    if "  " in text or not text.isprintable():
        return _BLANKS.sub(" ", text)
    return text


def _prepared_lines(lines: Iterable[str], preprocessing: Preprocessing) -> Iterator[str]:
    for line in lines:
        yield _prepare(line, preprocessing)


def _decode_bytes(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield the characters of UTF-8 text, each with the number of its bytes.

    A byte that is not part of a character becomes the replacement character U+FFFD. Tabs and line
    breaks become spaces.
    """
    start = 0
    while start < len(data):
        character, count = REPLACEMENT, 1
        for length in range(1, 5):
            try:
                character, count = data[start : start + length].decode("utf-8"), length
                break
            except UnicodeDecodeError:
                continue
        yield _BLANKS.sub(" ", character), count
        start += count


def _raise_training_error(error: RuntimeError, size: int, byte_fallback: bool) -> NoReturn:
    """Raise a ConfigError that explains why sentencepiece could not train.

    If the size of the vocabulary is the cause, the message says which setting to change.

    error:         the error that sentencepiece raised
    size:          the size of the vocabulary that the recipe asks for
    byte_fallback: True if the vocabulary includes pieces for bytes
    """
    message = str(error)
    setting = "text.tokenizer.size (or text.target_tokenizer.size, if it is set)"
    if match := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        fallback = "the 256 bytes of text.byte_fallback, " if byte_fallback else ""
        raise ConfigError(
            f"a vocabulary of {size} subwords is too small: {fallback}the special tokens, tags and "
            f"single characters of the training text need {match[1]} subwords; set {setting} well "
            "above that" + (", or set text.byte_fallback = false" if byte_fallback else "")
        ) from error
    raise ConfigError(f"sentencepiece cannot learn from the training text: {message}") from error


class SampledSubwordTokenizer(SubwordTokenizer):
    """A subword tokenizer whose `encode` samples one of the possible segmentations of a text.

    With BPE, each merge is skipped with probability `alpha` (Provilkov et al. 2020). With a unigram
    model, a segmentation of probability p is sampled in proportion to p^alpha (Kudo 2018). Every
    segmentation decodes to the same text.
    """

    def __init__(self, tokenizer: SubwordTokenizer, alpha: float, seed: int) -> None:
        """Create a tokenizer with the vocabulary of `tokenizer`.

        alpha: for BPE, the probability that a merge is skipped. For a unigram model, the exponent
               of the sampling: a segmentation of probability p is sampled in proportion to p^alpha
        seed:  random seed. `encode` does not use it: the caller passes it to
               `run_with_sampling_seed`. It changes `digest`, the hash that identifies encoded data
        """
        super().__init__(tokenizer.model, tokenizer.preprocessing)
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

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        # A list would be encoded in another thread, which has its own random generator.
        return [self.encode(text) for text in texts]


def encode_all(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return the token ids of each text."""
    if isinstance(tokenizer, SubwordTokenizer):
        return tokenizer.encode_all(texts)
    return [tokenizer.encode(text) for text in texts]


_seed_lock = threading.Lock()


def run_with_sampling_seed(seed: int, work: Callable[[], Result]) -> Result:
    """Run `work` and return its result. `seed` determines which segmentations `work` samples.

    sentencepiece has one random generator per thread. It seeds this generator only once, when the
    thread samples for the first time. So `work` runs in a new thread, which starts with `seed`.
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
