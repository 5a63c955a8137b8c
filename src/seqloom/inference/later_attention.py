"""Attention that is computed when it is first read.

A search that stores attention weights is slower, and only torch can run it. If the option
`attention` is None, the search does not store them. When the attention of an output is read, the
run's model computes it by forced decoding of that output. Outputs of neighbouring texts of the same
call are computed in the same batches, so that reading all of them is not much slower than reading
some of them.

An unread output refers to the model only weakly, so it does not keep the model in memory. If the
model is gone when the attention is read, the run is loaded again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from weakref import ReferenceType, ref

from seqloom.core.errors import ConfigError
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.inference.prediction import OutputAttention, Prediction
from seqloom.inference.predictor import Predictor
from seqloom.inference.texts.segments import TextOutputs
from seqloom.tasks.task import ModelInput

NEIGHBOURS = {"cuda": 512}
"""Number of texts whose attention is computed together, by the type of the device."""
CPU_NEIGHBOURS = 64


@dataclass(eq=False)
class UnreadText:
    """A text whose attention is computed when that of one of its outputs is first read.

    call:       the call that returned the outputs
    number:     position of the text among those of the call
    inputs:     model inputs of the segments of the text, by the index of the segment
    hypotheses: for each segment, its outputs
    segments:   makes the outputs of the text from those of its segments. None if the whole text is
                one input
    finished:   the outputs of the text with their attention; None if it is not computed yet
    """

    call: "UnreadAttention"
    number: int
    inputs: dict[int, ModelInput]
    hypotheses: dict[int, list[Hypothesis]]
    segments: TextOutputs | None
    finished: list[Prediction] | None = None

    def finish(self, found: dict[int, list[Prediction]]) -> None:
        """Store the outputs of the text.

        found: for each segment, its outputs with their attention
        """
        if self.segments is None:
            self.finished = found[0]
        else:
            self.finished = replace(self.segments, found=found).finish()
        self.inputs, self.hypotheses, self.segments = {}, {}, None


@dataclass(frozen=True)
class UnreadOutput:
    """One of the outputs of a text, or the output of one of its segments. A `LaterAttention`.

    text:    None for a copy of an output that was pickled before its attention was read
    rank:    index of the output among those of the text
    segment: index of the segment. None for the whole text
    """

    text: UnreadText | None
    rank: int
    segment: int | None = None

    def compute(self) -> OutputAttention:
        if self.text is None:
            raise ConfigError(
                "the attention of this output was not computed before the output was pickled. Read "
                "`attention` before, or pass attention=True"
            )
        if self.text.finished is None:
            self.text.call.compute(self.text.number)
        assert self.text.finished is not None
        output = self.text.finished[self.rank]
        if self.segment is not None:
            output = output.segments[self.segment]
        return output.read_attention()

    def __deepcopy__(self, memo: object) -> "UnreadOutput":
        return self

    def __reduce__(self) -> tuple[type["UnreadOutput"], tuple[None, int]]:
        return UnreadOutput, (None, self.rank)


@dataclass(eq=False)
class UnreadAttention:
    """The texts of one call, whose attention is computed when it is first read.

    predictor: the predictor of the run
    load:      loads the run again
    loaded:    the predictor that `load` returned
    """

    predictor: ReferenceType[Predictor]
    load: Callable[[], Predictor]
    loaded: Predictor | None = None
    texts: list[ReferenceType[UnreadText]] = field(default_factory=list)

    def add(
        self,
        outputs: list[Prediction],
        inputs: dict[int, ModelInput],
        hypotheses: dict[int, list[Hypothesis]],
        segments: TextOutputs | None = None,
    ) -> None:
        """Let the outputs of a text compute their attention when it is first read.

        inputs, hypotheses: the model input of each segment, and its outputs, by its index
        segments:           makes the outputs of the text from those of its segments. None if the
                            whole text is one input
        """
        # The text must not refer to the outputs: they refer to the text.
        kept = None
        if segments is not None:
            kept = TextOutputs(segments.task, segments.text, {}, segments.again)
        text = UnreadText(self, len(self.texts), inputs, hypotheses, kept)
        self.texts.append(ref(text))
        for rank, output in enumerate(outputs):
            if not output.pieces:
                continue
            output.compute_attention_later(UnreadOutput(text, rank))
            for index, part in enumerate(output.segments):
                if part.pieces:
                    part.compute_attention_later(UnreadOutput(text, rank, index))

    def compute(self, number: int) -> None:
        """Compute the attention of a text and of its unread neighbours."""
        predictor = self.predictor() or self.loaded
        if predictor is None:
            predictor = self.loaded = self.load()
        count = NEIGHBOURS.get(predictor.device.type, CPU_NEIGHBOURS)
        start = number - number % count
        alive = [each() for each in self.texts[start : start + count]]
        texts = [each for each in alive if each is not None and each.finished is None]
        pairs = [
            (text.inputs[index], hypothesis)
            for text in texts
            for index, hypotheses in text.hypotheses.items()
            for hypothesis in hypotheses
        ]
        outputs = iter(predictor.add_attention(pairs))
        for text in texts:
            text.finish(
                {
                    index: [next(outputs) for _ in hypotheses]
                    for index, hypotheses in text.hypotheses.items()
                }
            )
