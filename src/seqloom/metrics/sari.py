"""SARI: how well words were added, kept and deleted when a sentence was made simpler."""

from collections import Counter
from collections.abc import Iterator, Sequence

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from seqloom.metrics.score import References, Score, check_references

ORDERS = range(1, 5)
SIGNATURE = "corpus|del:f1|n:1-4|case:lc|tok:13a"

Grams = Counter[tuple[str, ...]]


class _Tally:
    """What a system did, what references did, and what both did, over a corpus."""

    def __init__(self) -> None:
        self.both = self.system = self.references = 0

    def add(self, system: Grams, references: Grams) -> None:
        self.both += (system & references).total()
        self.system += system.total()
        self.references += references.total()

    def f1(self) -> float:
        """2 · both / (system + references), the harmonic mean of precision and recall."""
        total = self.system + self.references
        return 2 * self.both / total if total else 0.0


def sari(sources: Sequence[str], hypotheses: Sequence[str], references: References) -> Score:
    """SARI of a corpus, 0 to 100 (Xu et al. 2016): the mean of three F-scores over 1- to 4-grams,
    of what was added, kept and deleted in comparison with the source.

    What is kept or deleted counts for as many references as agree; what is added counts once. The
    counts are those of the whole corpus, as in EASSE (Alva-Manchego et al. 2019).
    """
    check_references(hypotheses, references)
    cut = Tokenizer13a()  # type: ignore[no-untyped-call]
    tallies = {(order, name): _Tally() for order in ORDERS for name in ("add", "keep", "delete")}
    for source, output, several in zip(sources, hypotheses, references, strict=True):
        texts = [cut(text.lower()).split() for text in (source, output, *several)]
        for order in ORDERS:
            _compare([_grams(words, order) for words in texts], tallies, order)
    value = 100 * sum(tally.f1() for tally in tallies.values()) / len(tallies)
    return Score("SARI", value, SIGNATURE, True)


def _compare(grams: list[Grams], tallies: dict[tuple[int, str], _Tally], order: int) -> None:
    """Of a source, an output and its references, in this order."""
    source, output, *several = grams
    wanted = sum(several, Grams())
    # Each n-gram as often as there are references, to be set against all of them together.
    had, has = (
        Grams({gram: count * len(several) for gram, count in one.items()})
        for one in (source, output)
    )
    tallies[order, "add"].add(_new(output, source), _new(wanted, source))
    tallies[order, "keep"].add(had & has, had & wanted)
    tallies[order, "delete"].add(had - has, had - wanted)


def _new(grams: Grams, source: Grams) -> Grams:
    """Those that the source does not have, each once."""
    return Grams(set(grams) - set(source))


def _grams(words: list[str], order: int) -> Grams:
    return Grams(_windows(words, order))


def _windows(words: list[str], order: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(order)), strict=False)
