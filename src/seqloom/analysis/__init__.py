"""Analysis of trained models: decoder steps, searches, gradients, errors and comparisons.

explanation        every value of one decoder step, or of its backward pass, with its formula
attention_example  self-attention with numbers small enough to check by hand
gradients          gradients of the loss at inputs, hidden states, attention and weights
forward_trace      hidden states, attention and probabilities of a forward pass
lookup             exact, nearest and soft lookup in a table of keys and values
error_propagation  the effect of the first wrong token on the rest of an output
search_inspection  traces a search, lists alternative tokens, replaces a token
search_example     traces a search on a small built-in decoder, an example from a lecture
comparison         compares two runs on the same sentences
output             the output to analyse, and checks of the run
"""

from seqloom.analysis.comparison import RunComparison, compare_runs
from seqloom.analysis.error_propagation import ErrorPropagation, measure_error_propagation
from seqloom.analysis.explanation import Explanation, explain, explain_backward
from seqloom.analysis.forward_trace import ForwardTrace, trace_forward
from seqloom.analysis.gradients import (
    GradientFlow,
    GradientProfile,
    GradientTrace,
    LossGradients,
    LossGradientTrace,
    measure_gradients,
    measure_loss_gradients,
    profile_gradients,
    trace_gradients,
    trace_loss_gradients,
)
from seqloom.analysis.lookup import LookupResult, LookupTable, look_up
from seqloom.analysis.search_example import NEXT_WORDS as EXAMPLE_NEXT_WORDS
from seqloom.analysis.search_example import search_example
from seqloom.analysis.search_inspection import SearchInspection

__all__ = [
    "EXAMPLE_NEXT_WORDS",
    "ErrorPropagation",
    "Explanation",
    "ForwardTrace",
    "GradientFlow",
    "GradientProfile",
    "GradientTrace",
    "LookupResult",
    "LookupTable",
    "LossGradientTrace",
    "LossGradients",
    "RunComparison",
    "SearchInspection",
    "compare_runs",
    "explain",
    "explain_backward",
    "look_up",
    "measure_error_propagation",
    "measure_gradients",
    "measure_loss_gradients",
    "profile_gradients",
    "search_example",
    "trace_forward",
    "trace_gradients",
    "trace_loss_gradients",
]
