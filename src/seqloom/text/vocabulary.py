"""Ids and pieces. The four special tokens have the same ids in every vocabulary."""

from collections.abc import Mapping, Sequence

PAD = 0
START = 1
END = 2
UNKNOWN = 3
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")


class Vocabulary:
    """Ids <-> pieces: the special tokens, then reserved pieces, then what was counted.

    A piece that is not in the vocabulary has the id UNKNOWN. The special tokens have ids but
    cannot be looked up by name: the text "<s>" is text, not START.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        """`pieces` without the special tokens, each once, the first with id 4."""
        self.pieces = (*SPECIAL, *pieces)
        self._ids = {piece: id_ for id_, piece in enumerate(pieces, start=len(SPECIAL))}
        assert len(self._ids) == len(pieces), "a piece is listed twice"

    @classmethod
    def count(
        cls,
        counts: Mapping[str, int],
        reserved: Sequence[str] = (),
        size: int | None = None,
        min_count: int = 1,
    ) -> "Vocabulary":
        """The most frequent pieces; equally frequent ones in the order of their characters."""
        ranked = sorted(
            (piece for piece, n in counts.items() if n >= min_count and piece not in reserved),
            key=lambda piece: (-counts[piece], piece),
        )
        room = None if size is None else max(size - len(SPECIAL) - len(reserved), 0)
        return cls((*reserved, *ranked[:room]))

    def __len__(self) -> int:
        return len(self.pieces)

    def __contains__(self, piece: str) -> bool:
        return piece in self._ids

    def id(self, piece: str) -> int:
        return self._ids.get(piece, UNKNOWN)

    def piece(self, id_: int) -> str:
        assert 0 <= id_ < len(self.pieces), f"id {id_} in a vocabulary of {len(self.pieces)}"
        return self.pieces[id_]
