"""Lists the values that a label decoder computes in one step, with their formulas."""

from torch import Tensor

from seqloom.analysis.explain import formulas
from seqloom.analysis.explain.step_trace import StepTrace, trace_output
from seqloom.models.labels import LabelDecoder, VectorSelector, select_last, select_mean

_SUMMARIES: dict[VectorSelector, str] = {
    select_last: "the encoder's last state",
    select_mean: "the mean of the encoder's states",
}
"""Descriptions of the selected vector, for selectors that return one vector for the whole source.

All other selectors return one vector for each position.
"""


def trace_labels(decoder: LabelDecoder, trace: StepTrace) -> Tensor:
    """Add the values that a label decoder computes in one step, with their formulas, to `trace`.

    Returns the probabilities of the next label: (V,)
    """
    vectors, counts = decoder.select_vectors(trace.memory)  # (1, N, D), (1,)
    last = max(int(counts) - 1, 0)
    index = min(trace.step - 1, last)
    ended = trace.step > int(counts)
    vector = _SUMMARIES.get(decoder.select_vectors, formulas.indexed("h", index + 1))
    trace.begin_section("input")
    note = "the output has all its labels: only END is possible" if ended else ""
    trace.add("labelled vector", f"v = {vector}", vectors[0, index], note=note)
    symbols = ["v"]
    if decoder.previous is not None:
        previous = decoder.previous(trace.tokens[:, -1])
        formula = formulas.embedding(decoder.previous, trace.previous("y"))
        trace.add("previous label", f"w = {formula}", previous[0])
        symbols.append("w")
    features = decoder(trace.tokens, trace.memory).features[:, -1]
    return trace_output(decoder, features, formulas.concatenated(symbols), trace)
