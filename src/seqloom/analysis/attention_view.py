"""Selects the attention weights that `seqloom inspect` shows."""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from seqloom.core.errors import ConfigError
from seqloom.inference.attention_maps import ALL_HEADS, HeadChoice, choose_heads
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.metrics.subword_merging import AttentionMap


@dataclass
class AttentionView:
    """Selects the attention weights of a prediction that are shown as an attention map.

    layer:      layer, counted from 1. None: the mean over layers.
    head:       head, counted from 1. None: the mean over heads.
    best_heads: the heads that align words best, as stored in the run folder. If given, the map is
                the mean of these heads, and `layer` and `head` are ignored.
    pieces:     True: the rows and columns of the map are the model's tokens. False: they are words.
    """

    layer: int | None
    head: int | None
    best_heads: HeadChoice | None
    pieces: bool
    _notes: set[str] = field(default_factory=set)

    @classmethod
    def create(
        cls, run: Run, *, layer: int | None, head: int | None, use_best_heads: bool, pieces: bool
    ) -> "AttentionView":
        """Create the view that the options of `seqloom inspect` select.

        use_best_heads: use the attention heads that align words best, as stored in the run folder.
                        Raises ConfigError if the folder does not store them
        """
        stored = run.predictor.head_choice
        if use_best_heads and stored == ALL_HEADS:
            raise ConfigError(
                f"{run.name}: the heads that align best are not known. Find them with "
                "`seqloom alignment-heads RUN SOURCE TARGET --gold FILE`."
            )
        return cls(layer, head, stored if use_best_heads else None, pieces)

    def selected_map(self, prediction: Prediction) -> AttentionMap:
        """Return the selected attention map. Its weights are (T, S): target by source positions."""
        return prediction.attention_map(
            self._selected_weights(prediction), merged=self._merges_words(prediction)
        )

    def full_map(self, prediction: Prediction) -> AttentionMap:
        """Return the attention maps of all layers and heads.

        The weights are (T, L, H, S): target positions, layers, heads, source positions.
        """
        assert prediction.heads is not None
        return prediction.attention_map(prediction.heads, merged=self._merges_words(prediction))

    def to_json(self, prediction: Prediction) -> dict[str, Any]:
        """Return the prediction, the selected map, and the maps of all heads, for JSON."""
        selected, full = self.selected_map(prediction), self.full_map(prediction)
        record = prediction.to_json()
        del record["attention"], record["heads"]
        return {
            **record,
            "word_of": prediction.word_of,
            "source_word_of": prediction.source_word_of,
            "view": self.describe(prediction),
            "outputs": selected.outputs,
            "sources": selected.sources,
            "weights": selected.weights.tolist(),
            "heads": full.weights.swapaxes(0, 1).swapaxes(1, 2).tolist(),
        }

    def describe(self, prediction: Prediction) -> str:
        """Describe the selection, for example "layer 2 of 6, head 1 of 8"."""
        if self.best_heads is not None:
            return f"mean of the heads that align best: {self.best_heads}"
        layers, heads = self._layers_and_heads(prediction)
        if layers * heads == 1:
            return "the only attention head"
        layer = "all layers" if self.layer is None else f"layer {self.layer} of {layers}"
        head = "all heads" if self.head is None else f"head {self.head} of {heads}"
        if self.layer is None or self.head is None:
            return f"mean of {layer} and {head}"
        return f"{layer}, {head}"

    @property
    def notes(self) -> list[str]:
        """Notes for the user about maps that show tokens, although words were requested."""
        return sorted(self._notes)

    def _selected_weights(self, prediction: Prediction) -> Tensor:
        assert prediction.heads is not None
        assert prediction.alignment_weights is not None
        if self.best_heads is not None:
            return prediction.alignment_weights
        layers, heads = self._layers_and_heads(prediction)
        return choose_heads(layers, heads, self.layer, self.head).mean(prediction.heads)

    def _layers_and_heads(self, prediction: Prediction) -> tuple[int, int]:
        assert prediction.heads is not None
        return prediction.heads.shape[1], prediction.heads.shape[2]

    def _merges_words(self, prediction: Prediction) -> bool:
        """Return True if the map of this prediction shows words, False if it shows tokens.

        The map shows tokens if `pieces` is True. It also shows tokens if the source or the output
        is a single word and at least one word consists of several tokens: a map with a single row
        or column would show little. In this second case, the method adds a note to `notes`.
        """
        if self.pieces:
            return False
        word_counts = [
            len(set(words) - {-1}) for words in (prediction.word_of, prediction.source_word_of)
        ]
        token_count = len(prediction.pieces) + len(prediction.source_pieces)
        if min(word_counts) < 2 and token_count > sum(word_counts) + 2:
            self._notes.add("texts of a single word are shown token by token")
            return False
        return True
