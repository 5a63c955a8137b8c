"""[text]: how strings become ids."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.section import Section


class CharactersConfig(Section):
    """Every character is a token."""

    kind: Literal["characters"] = "characters"


class WordsConfig(Section):
    """Words and punctuation marks are tokens; rare ones become the unknown token."""

    kind: Literal["words"] = "words"
    size: int = Field(30_000, gt=4)
    """The most frequent words kept, special tokens included."""
    min_count: int = Field(1, ge=1)
    """A word seen less often than this becomes unknown."""


class SubwordsConfig(Section):
    """Pieces learned by sentencepiece from the training split."""

    kind: Literal["subwords"] = "subwords"
    algorithm: Literal["bpe", "unigram"] = "bpe"
    size: int = Field(8_000, gt=4)
    """Pieces in the vocabulary, special tokens included."""


TokenizerConfig = Annotated[
    CharactersConfig | WordsConfig | SubwordsConfig, Field(discriminator="kind")
]


class TextConfig(Section):
    tokenizer: TokenizerConfig = SubwordsConfig()
    """How both sides are cut into tokens."""
    target_tokenizer: TokenizerConfig | None = None
    """How the target is cut, if otherwise than the source."""
    shared: bool = False
    """One vocabulary, learned from both sides together."""
    lowercase: bool = False
    """Fold both sides to lower case before anything else (and so also what comes out)."""
    tags: tuple[str, ...] = ()
    """Strings such as '<U>' or '<2fr>' that are one token each, whatever the tokenizer."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.shared and self.target_tokenizer is not None:
            raise ValueError(
                "shared = true means one tokenizer for both sides, but target_tokenizer is set; "
                "remove one of the two"
            )
        bad = [tag for tag in self.tags if not tag or tag != tag.strip() or " " in tag]
        if bad:
            raise ValueError(f"tags must be non-empty and without spaces, not {bad}")
        return self

    @property
    def target(self) -> TokenizerConfig:
        return self.tokenizer if self.target_tokenizer is None else self.target_tokenizer
