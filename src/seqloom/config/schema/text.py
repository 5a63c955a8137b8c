"""[text]: tokenizers and vocabularies."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.extensions.unions import ByKind
from seqloom.config.schema.section import PartConfig, Section
from seqloom.extensions.registry import FORM, Point

Normalization = Literal["nfc", "nfkc", "none"]
"""Unicode normalisation forms, by their names in recipes."""


class TokenizerConfig(PartConfig):
    """Base class of the settings of tokenizers. `builds` names the class of the tokenizer."""

    extension_point: ClassVar[str] = "tokenizer"


class CharactersConfig(TokenizerConfig):
    """Every character is a token."""

    builds: ClassVar[str] = "seqloom.text.vocabulary_tokenizer:CharacterTokenizer"
    kind: Literal["characters"] = "characters"


class WordsConfig(TokenizerConfig):
    """Words and punctuation marks are tokens. Rare ones become the unknown token."""

    builds: ClassVar[str] = "seqloom.text.words:WordTokenizer"
    kind: Literal["words"] = "words"
    size: int = Field(30_000, gt=4)
    """Maximum size of the vocabulary, including special tokens. The most frequent words are kept.
    Default: 30000."""
    min_count: int = Field(1, ge=1)
    """Minimum number of occurrences of a word in the training split. Rarer words become the unknown token. Default: 1."""


class WhitespaceConfig(TokenizerConfig):
    """Tokens are separated by white space: for labels, phonemes and tokenised text."""

    builds: ClassVar[str] = "seqloom.text.words:WhitespaceTokenizer"
    kind: Literal["whitespace"] = "whitespace"
    size: int = Field(30_000, gt=4)
    """Maximum size of the vocabulary, including special tokens. The most frequent tokens are kept,
    others become the unknown token. Default: 30000."""


class SubwordsConfig(TokenizerConfig):
    """Subword pieces that sentencepiece learns from the training split."""

    builds: ClassVar[str] = "seqloom.text.subwords:SubwordTokenizer"
    kind: Literal["subwords"] = "subwords"
    algorithm: Literal["bpe", "unigram"] = "bpe"
    """Algorithm that learns the pieces: "bpe" is byte-pair encoding, "unigram" a unigram language
    model. Default: "bpe"."""
    size: int = Field(8_000, gt=4)
    """Maximum size of the vocabulary, including special tokens. Little text yields fewer pieces.
    Choose fewer pieces for less data, for example 3000 for ten thousand pairs. Default: 8000."""


class ImportedTokenizerConfig(TokenizerConfig):
    """The tokenizer of a model that `seqloom import` read. It is stored in the run folder and cannot
    be trained."""

    builds: ClassVar[str] = "seqloom.text.imported:ImportedTokenizer"
    kind: Literal["imported"] = "imported"


class TokenizerExtensionConfig(ExtensionConfig, TokenizerConfig):
    """A tokenizer outside seqloom: a subclass of `seqloom.text.PieceTokenizer`."""

    builds: ClassVar[str] = FORM
    extension_point: ClassVar[Point] = "tokenizer"
    size: int = Field(30_000, gt=4)
    """Maximum size of the vocabulary, including special tokens. The most frequent pieces are kept,
    others become the unknown token. Default: 30000."""


class SubwordSamplingConfig(Section):
    """Subword regularisation: training splits words into subwords at random, differently from epoch
    to epoch. Scoring and prediction always use the best segmentation."""

    alpha: float = Field(0.1, gt=0, le=1)
    """For BPE, the probability of skipping a merge (Provilkov et al. 2020). For unigram models,
    a segmentation of probability p is sampled in proportion to p^alpha (Kudo 2018). Default:
    0.1."""
    variants: int = Field(8, ge=1)
    """Number of times that the whole training split is segmented at random and cached. Each epoch
    uses the next of these versions. Default: 8."""


class NewTagConfig(Section):
    """A tag that fine-tuning adds to the vocabulary of the parent, the run that it starts from."""

    tag: str
    """The new tag, such as '<2yo>'."""
    like: str
    """A tag or another token of the parent's vocabulary. The embedding and the output weights of the new tag start
    as a copy of those of this token."""


class TextConfig(Section):
    """Tokenizers of source and target."""

    tokenizer: Annotated[TokenizerConfig, ByKind()] = SubwordsConfig()
    """Tokenizer of both sides. Default: kind "subwords"."""
    target_tokenizer: Annotated[TokenizerConfig, ByKind()] | None = None
    """Tokenizer of the target, if it differs from that of the source. Default: text.tokenizer, with
    kind "whitespace" for labels."""
    shared: bool = False
    """Use one vocabulary for both sides, learned from source and target together. Useful for related languages,
    and required by copying and by model.tie = "all". Default: false."""
    lowercase: bool = False
    """Lowercase source and target. Outputs are then lowercase too. Default: false."""
    normalization: Normalization = "nfc"
    """Unicode normalisation of source and target. With "nfc", the two ways to write "é" (one character, or "e" and a
    combining accent) give the same tokens. "nfkc" also replaces compatibility characters: "ﬁ" becomes "fi", "①"
    becomes "1". "none" keeps every text as it is. Outputs and references are scored in this form. Default: "nfc"."""
    byte_fallback: bool = False
    """Encode a character that is not in the vocabulary as the bytes of its UTF-8 form instead of the unknown token.
    Applies to tokenizers of kind "subwords". Their size includes 256 pieces for the bytes. Default: false."""
    tags: tuple[str, ...] = ()
    """Strings such as '<U>' or '<2fr>' that are always a single token. Predictions have a warning if
    a source text contains none of them. Default: []."""

    new_tags: tuple[NewTagConfig, ...] = ()
    """Tags that fine-tuning adds to the vocabulary of the parent, for example for a new language.
    Default: []."""
    split_sentences: Literal["auto"] | bool = "auto"
    """Split each input of a translation run into sentences, translate every sentence, and join the
    outputs. Training and scoring never split. "auto" splits if the training data consists of single
    sentences: most sources and targets end with a stop, and few sources contain several sentences.
    The run folder stores true or false. Default: "auto"."""
    pass_through: Literal["auto"] | bool = "auto"
    """Copy parts that the model cannot translate from the input to the output: URLs, e-mail
    addresses, placeholders, tags, emoji, and characters that the vocabulary does not contain.
    "auto" means true if the run splits sentences. Default: "auto"."""

    sampling: SubwordSamplingConfig | None = None
    """Subword regularisation: sample the subword segmentation of the training split. Helps with
    little data. Default: off."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.shared and self.target_tokenizer is not None:
            raise ValueError(
                "shared = true means one tokenizer for both sides, but target_tokenizer is set; "
                "remove one of the two"
            )
        tags = (*self.tags, *(new.tag for new in self.new_tags))
        invalid = [tag for tag in tags if not tag or tag != tag.strip() or " " in tag]
        if invalid:
            raise ValueError(f"tags must be non-empty and without spaces, not {invalid}")
        kinds = [tokenizer.kind for tokenizer in (self.tokenizer, self.target)]
        other_kinds = [kind for kind in kinds if kind != "subwords"]
        if self.sampling is not None and other_kinds:
            raise ValueError(
                f"sampling needs subwords, but the tokenizer kind is '{other_kinds[0]}'; "
                "remove sampling, or use kind = 'subwords'"
            )
        # If true were the default, it would be the value of every recipe without subwords.
        is_default = self.byte_fallback == type(self).model_fields["byte_fallback"].default
        if self.byte_fallback and not is_default and "subwords" not in kinds:
            raise ValueError(
                f"byte_fallback needs subwords, but the tokenizer kind is '{kinds[0]}'; "
                "remove byte_fallback, or use kind = 'subwords'"
            )
        return self

    @property
    def target(self) -> TokenizerConfig:
        """Tokenizer of the target."""
        return self.tokenizer if self.target_tokenizer is None else self.target_tokenizer
