"""Computes word alignments from attention, combines the alignments of two directions
(symmetrisation), and converts alignments to and from text."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, assert_never, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.core.errors import ConfigError, DataError
from seqloom.metrics.subword_merging import NO_WORD, group_positions, merge_words

Link = tuple[int, int]
"""Indices of a source word and of the target word that it is aligned with, both from 0."""
Alignment = list[Link]

MIN_SOFT_WEIGHT = 0.005
"""Minimum weight of a link in a soft alignment. Smaller weights would be rounded to 0.00."""


def align_words(
    attention: ArrayLike, target_words: Sequence[int], source_words: Sequence[int]
) -> Alignment:
    """Link each target word to the source word with the largest attention weight.

    attention:    (T, S) attention weights of each target position over the source positions
    target_words: word index of each of the T positions, -1 for a position that belongs to no word
    source_words: word index of each of the S positions, -1 for a position that belongs to no word

    The weight between two words is the sum over the positions of the source word and the mean over
    the positions of the target word. Links are in the order of the target words.
    """
    weights, targets, sources = attention_between_words(attention, target_words, source_words)
    if not sources:
        return []
    best = [int(column) for column in weights.argmax(axis=1)]
    return [(sources[column], word) for column, word in zip(best, targets, strict=True)]


class WordAttention(NamedTuple):
    """Attention weights between words.

    weights:      one row per target word, one column per source word
    target_words: word index of each row
    source_words: word index of each column
    """

    weights: NDArray[np.float64]
    target_words: list[int]
    source_words: list[int]


def attention_between_words(
    attention: ArrayLike, target_words: Sequence[int], source_words: Sequence[int]
) -> WordAttention:
    """Convert attention between positions (T, S) to attention between words.

    Positions that belong to no word, such as END, have no row and no column in the result.
    Therefore the rows of the result may sum to less than 1.

    target_words: word index of each of the T positions, -1 for a position that belongs to no word
    source_words: word index of each of the S positions, -1 for a position that belongs to no word
    """
    merged = merge_words(attention, target_words, source_words)
    targets = [target_words[group[0]] for group in group_positions(target_words)]
    sources = [source_words[group[0]] for group in group_positions(source_words)]
    rows = [row for row, word in enumerate(targets) if word != NO_WORD]
    columns = [column for column, word in enumerate(sources) if word != NO_WORD]
    return WordAttention(
        merged[np.ix_(rows, columns)],
        [targets[row] for row in rows],
        [sources[column] for column in columns],
    )


def align_by_agreement(forward: ArrayLike, backward: ArrayLike) -> tuple[Alignment, Alignment]:
    """Align words by the product of the attention weights of two models (Liang et al. 2006).

    Returns two alignments. The first links each target word to the source word with the largest
    product. The second links each source word to the target word with the largest product. In both
    alignments each link lists the source word first.

    forward:  (T, S) attention from target words to source words
    backward: (S, T) attention from source words to target words, by a model of the opposite
              direction
    """
    product = np.asarray(forward, dtype=np.float64) * np.asarray(backward, dtype=np.float64).T
    if not product.size:
        return [], []
    sources, targets = product.argmax(axis=1), product.argmax(axis=0)
    return (
        [(int(source), target) for target, source in enumerate(sources)],
        [(source, int(target)) for source, target in enumerate(targets)],
    )


Symmetrisation = Literal["intersection", "union", "grow-diag", "grow-diag-final"]
"""Method that combines two alignments into one (Och and Ney 2003; Koehn et al. 2005).

intersection     links that are in both alignments: few links with high precision
union            links that are in at least one alignment: many links
grow-diag        starts with the intersection and repeatedly adds links of the union that are
                 adjacent to a link already chosen and contain a word without a link
grow-diag-final  grow-diag, then every other link of the union that contains a word without a link
"""
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def parse_symmetrisation(name: str) -> Symmetrisation:
    """Return the symmetrisation method with this name. Raise ConfigError if there is none."""
    for known_name in get_args(Symmetrisation):
        if name == known_name:
            return known_name
    raise ConfigError(
        f"there is no symmetrisation '{name}'; use one of {', '.join(get_args(Symmetrisation))}"
    )


def symmetrise(
    forward: Iterable[Link], backward: Iterable[Link], method: Symmetrisation
) -> Alignment:
    """Combine the alignments of two models of opposite directions.

    In both alignments each link lists the source word first.
    """
    first, second = set(forward), set(backward)
    match method:
        case "intersection":
            links = first & second
        case "union":
            links = first | second
        case "grow-diag":
            links = _grow_diagonal(first & second, first | second)
        case "grow-diag-final":
            links = _add_final(_grow_diagonal(first & second, first | second), first | second)
        case _:
            assert_never(method)
    return sorted(links, key=lambda link: (link[1], link[0]))


def _grow_diagonal(links: set[Link], union: set[Link]) -> set[Link]:
    """Add links of `union` to a copy of `links` until no more can be added. Return the copy.

    A link (source, target) can be added under two conditions. It must be next to a link of the
    copy: both indices differ by at most 1. And its source word or its target word must not have a
    link in the copy yet.
    """
    links = set(links)
    queue = sorted(links)
    while queue:
        source, target = queue.pop(0)
        for source_offset, target_offset in _NEIGHBOURS:
            neighbour = source + source_offset, target + target_offset
            if neighbour in union - links and _links_new_word(neighbour, links):
                links.add(neighbour)
                queue.append(neighbour)
    return links


def _add_final(links: set[Link], union: set[Link]) -> set[Link]:
    for link in sorted(union - links):
        if _links_new_word(link, links):
            links.add(link)
    return links


def _links_new_word(link: Link, links: set[Link]) -> bool:
    sources, targets = {source for source, _ in links}, {target for _, target in links}
    return link[0] not in sources or link[1] not in targets


def format_pharaoh(alignment: Sequence[Link]) -> str:
    """Write links in the Pharaoh format, source word first: [(0, 0), (1, 2)] -> "0-0 1-2"."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def parse_pharaoh(line: str) -> Alignment:
    """Read links in the Pharaoh format, source word first: "0-0 1-2" -> [(0, 0), (1, 2)]."""
    links, invalid = [], []
    for entry in line.split():
        source, _, target = entry.partition("-")
        if all(number.isascii() and number.isdigit() for number in (source, target)):
            links.append((int(source), int(target)))
        else:
            invalid.append(repr(entry))
    if invalid:
        raise DataError(
            f"not an alignment: {', '.join(invalid)}; write source-target pairs such as 0-0 1-2"
        )
    return links


def format_soft(weights: ArrayLike, targets: Sequence[int], sources: Sequence[int]) -> str:
    """Write links with their weights, source word first: "0-0:0.93 1-0:0.07".

    Links are sorted by target word. Links with a weight below `MIN_SOFT_WEIGHT` are left out.

    weights: (T, S) attention weights between words
    targets: word index of each of the T rows
    sources: word index of each of the S columns
    """
    table = np.asarray(weights, dtype=np.float64)
    return " ".join(
        f"{source}-{target}:{table[row, column]:.2f}"
        for row, target in enumerate(targets)
        for column, source in enumerate(sources)
        if table[row, column] >= MIN_SOFT_WEIGHT
    )
