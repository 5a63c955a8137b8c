"""The vocabulary: token ids and their pieces.

The four special tokens have the same ids in every vocabulary.
"""

from collections.abc import Mapping, Sequence

PAD = 0
START = 1
END = 2
UNKNOWN = 3
SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")


class Vocabulary:
    """Maps token ids to pieces and back. A piece is the string that a token stands for.

    The ids 0 to 3 are the special tokens. A piece that is not in the vocabulary has the id UNKNOWN.
    `id` never returns PAD, START or END. The string "<s>" in a text is ordinary text, not START.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        """`pieces` are unique and exclude the special tokens. The first piece gets id 4."""
        self.pieces = (*SPECIAL_TOKENS, *pieces)
        self._ids = {piece: id_ for id_, piece in enumerate(pieces, start=len(SPECIAL_TOKENS))}
        assert len(self._ids) == len(pieces), "a piece is listed twice"

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        reserved: Sequence[str] = (),
        size: int | None = None,
        min_count: int = 1,
    ) -> "Vocabulary":
        """Build a vocabulary of the most frequent pieces, in order of decreasing frequency.

        Equally frequent pieces are in lexicographic order.

        reserved:  pieces that are always included, before the counted ones
        size:      maximum size of the vocabulary, including special tokens and reserved pieces
        min_count: minimum number of occurrences; rarer pieces are left out
        """
        ranked = sorted(
            (piece for piece, n in counts.items() if n >= min_count and piece not in reserved),
            key=lambda piece: (-counts[piece], piece),
        )
        limit = None if size is None else max(size - len(SPECIAL_TOKENS) - len(reserved), 0)
        return cls((*reserved, *ranked[:limit]))

    def __len__(self) -> int:
        return len(self.pieces)

    def __contains__(self, piece: str) -> bool:
        return piece in self._ids

    def id(self, piece: str) -> int:
        """Return the id of a piece; UNKNOWN if the vocabulary does not have it."""
        return self._ids.get(piece, UNKNOWN)

    def piece(self, id_: int) -> str:
        """Return the piece with this id."""
        assert 0 <= id_ < len(self.pieces), f"id {id_} in a vocabulary of {len(self.pieces)}"
        return self.pieces[id_]
