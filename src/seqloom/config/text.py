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


class WhitespaceConfig(Section):
    """What white space separates is a token, whatever it is made of: labels, phones, text that was
    cut into words before."""

    kind: Literal["whitespace"] = "whitespace"
    size: int = Field(30_000, gt=4)
    """The most frequent tokens kept, special ones included; others become the unknown token."""


class SubwordsConfig(Section):
    """Pieces learned by sentencepiece from the training split."""

    kind: Literal["subwords"] = "subwords"
    algorithm: Literal["bpe", "unigram"] = "bpe"
    size: int = Field(8_000, gt=4)
    """Pieces in the vocabulary, special tokens included."""


TokenizerConfig = Annotated[
    CharactersConfig | WordsConfig | WhitespaceConfig | SubwordsConfig,
    Field(discriminator="kind"),
]


class SamplingConfig(Section):
    """Subword regularisation: words of the training split are cut in random ways, which differ
    from epoch to epoch. What is scored or translated is always cut in the one best way."""

    alpha: float = Field(0.1, gt=0, le=1)
    """BPE: each merge is left out with this probability (Provilkov et al. 2020). Unigram: cuts
    are drawn in proportion to their probability to this power (Kudo 2018)."""
    variants: int = Field(8, ge=1)
    """So many ways are drawn and kept in the cache; epochs take them in turn."""


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

    sampling: SamplingConfig | None = None
    """Cut the training split into subwords in random ways. Left out: in the one best way."""

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
        fixed = [one.kind for one in (self.tokenizer, self.target) if one.kind != "subwords"]
        if self.sampling is not None and fixed:
            raise ValueError(
                f"sampling cuts subwords in several ways, but there is one way only to cut text "
                f"into {fixed[0]}; leave sampling out, or use kind = 'subwords'"
            )
        return self

    @property
    def target(self) -> TokenizerConfig:
        return self.tokenizer if self.target_tokenizer is None else self.target_tokenizer
