"""Explanation of one decoder step: every intermediate value, with its formula.

explainer         `explain` for a step of a run, `explain_step` for a step of any decoder
explanation       the types: `Explanation`, which contains a `TracedValue` for each value
step_trace        collects the values, and traces the input, attention and output of a step
recurrent, transformer, labels
                  one module per kind of decoder; traces a complete step of this decoder
backward          the gradients of one attention step, in the order of the backward pass
formulas          formulas as text
lecture_example   self-attention with numbers small enough to check by hand
"""
