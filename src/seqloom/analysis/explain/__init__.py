"""Explanation of one decoder step: every intermediate value, with its formula.

explainer         `explain` for a step of a run, `explain_step` for a step of any decoder
explanation       the types: Explanation and its TracedValues
step_trace        collects the values; traces input, attention and output of a step
recurrent, transformer, labels
                  trace a complete step, for one kind of decoder each
formulas          formulas as text
lecture_example   self-attention with numbers small enough to check by hand
"""
