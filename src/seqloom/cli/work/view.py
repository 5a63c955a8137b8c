"""What of an output's attention is shown: a layer, a head, words or pieces."""

from dataclasses import dataclass, field

from torch import Tensor

from seqloom.core.errors import ConfigError
from seqloom.metrics.merging import AttentionMap
from seqloom.runs.attention_maps import ALL_HEADS, HeadChoice, choose_heads
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run


@dataclass
class View:
    """layer, head: counted from 1; left out: the mean of all
    best:        the heads that align best instead; None: they were not asked for
    pieces:      tokens, not merged to words
    """

    layer: int | None
    head: int | None
    best: HeadChoice | None
    pieces: bool
    _told: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, run: Run, layer: int | None, head: int | None, best: bool, pieces: bool) -> "View":
        stored = run.predictor.head_choice
        if best and stored == ALL_HEADS:
            raise ConfigError(
                f"{run.name}: which heads align best is not known yet; find them with "
                "`seqloom align RUN SOURCE TARGET --gold FILE --find-heads`"
            )
        return cls(layer, head, stored if best else None, pieces)

    def chosen(self, output: Prediction) -> AttentionMap:
        """(T, S)"""
        return output.attention_map(self._weights(output), merged=self._merges(output))

    def every(self, output: Prediction) -> AttentionMap:
        """(T, L, H, S)"""
        assert output.heads is not None
        return output.attention_map(output.heads, merged=self._merges(output))

    def name(self, output: Prediction) -> str:
        """What is shown, in words."""
        if self.best is not None:
            return f"mean of the heads that align best: {self.best}"
        layers, heads = self._shape(output)
        if layers * heads == 1:
            return "the one head there is"
        layer = "all layers" if self.layer is None else f"layer {self.layer} of {layers}"
        head = "all heads" if self.head is None else f"head {self.head} of {heads}"
        return (
            f"mean of {layer} and {head}" if None in (self.layer, self.head) else f"{layer}, {head}"
        )

    def notes(self) -> list[str]:
        """What was shown otherwise than asked for."""
        return sorted(self._told)

    def _weights(self, output: Prediction) -> Tensor:
        assert output.heads is not None
        assert output.aligning is not None
        if self.best is not None:
            return output.aligning
        layers, heads = self._shape(output)
        return choose_heads(layers, heads, self.layer, self.head).mean(output.heads)

    def _shape(self, output: Prediction) -> tuple[int, int]:
        assert output.heads is not None
        return output.heads.shape[1], output.heads.shape[2]

    def _merges(self, output: Prediction) -> bool:
        """Of a text of one word there would be nothing left to see."""
        if self.pieces:
            return False
        counts = [len(set(words) - {-1}) for words in (output.word_of, output.source_word_of)]
        if min(counts) < 2 and len(output.pieces) + len(output.source_pieces) > sum(counts) + 2:
            self._told.add("texts of a single word are shown by their pieces")
            return False
        return True
