"""Two alignments of the same sentences, one from each side, made one.

    intersection     what both found: few links, and right
    union            what either found: many links
    grow-diag        the intersection, and from the union what touches it, as long as a word of it
                     has no link yet
    grow-diag-final  and at last every link of the union one of whose words still has none

(Och and Ney 2003; Koehn et al. 2005)
"""

from collections.abc import Iterable
from typing import Literal, assert_never, get_args

import numpy as np
from numpy.typing import ArrayLike

from seqloom.core.errors import ConfigError
from seqloom.metrics.alignment import Alignment

Link = tuple[int, int]
Symmetry = Literal["intersection", "union", "grow-diag", "grow-diag-final"]
_AROUND = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def known_symmetry(name: str) -> Symmetry:
    """What was typed, if it is one of them."""
    for known in get_args(Symmetry):
        if name == known:
            return known
    raise ConfigError(
        f"there is no symmetrisation '{name}'; there are {', '.join(get_args(Symmetry))}"
    )


def symmetrise(forward: Iterable[Link], backward: Iterable[Link], how: Symmetry) -> Alignment:
    """Links of a model in one direction and of another in the other, both source before target."""
    one, other = set(forward), set(backward)
    match how:
        case "intersection":
            links = one & other
        case "union":
            links = one | other
        case "grow-diag":
            links = _grown(one & other, one | other)
        case "grow-diag-final":
            links = _completed(_grown(one & other, one | other), one | other)
        case _:
            assert_never(how)
    return sorted(links, key=lambda link: (link[1], link[0]))


def _grown(links: set[Link], union: set[Link]) -> set[Link]:
    """Neighbours join, and their neighbours, until none is left that would reach a new word."""
    links = set(links)
    waiting = sorted(links)
    while waiting:
        source, target = waiting.pop(0)
        for down, across in _AROUND:
            near = source + down, target + across
            if near in union - links and _reaches_a_new_word(near, links):
                links.add(near)
                waiting.append(near)
    return links


def _completed(links: set[Link], union: set[Link]) -> set[Link]:
    for link in sorted(union - links):
        if _reaches_a_new_word(link, links):
            links.add(link)
    return links


def _reaches_a_new_word(link: Link, links: set[Link]) -> bool:
    sources, targets = {one for one, _ in links}, {one for _, one in links}
    return link[0] not in sources or link[1] not in targets


def agreeing(forward: ArrayLike, backward: ArrayLike) -> tuple[Alignment, Alignment]:
    """The best links of each side, once both have had a say: the product of what they weigh.

    forward:  (T, S) where the words of the target looked
    backward: (S, T) where those of the source looked, by a model of the other direction
    (Liang et al. 2006)
    """
    product = np.asarray(forward, dtype=np.float64) * np.asarray(backward, dtype=np.float64).T
    if not product.size:
        return [], []
    sources, targets = product.argmax(axis=1), product.argmax(axis=0)
    return (
        [(int(source), target) for target, source in enumerate(sources)],
        [(source, int(target)) for source, target in enumerate(targets)],
    )
