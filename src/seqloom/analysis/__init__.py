"""Analysis of trained models: decoder steps, searches, gradients, errors and comparisons.

explain/            every value of one decoder step, with its formula
gradients           gradient norms at the inputs of every step, for one or many sentences
gradient_flow       the gradient vectors at the inputs of every step, for any model and batch
loss_gradient_norms gradient norms at hidden states, inside attention and at the weights
loss_gradients      gradient vectors at hidden states, inside attention and at the weights
forward_record      the forward pass that records hidden states and attention for loss_gradients
forward_trace       hidden states, attention weights and probabilities of a recurrent model
lookup              exact, nearest and soft lookup in a table of keys and values
error_propagation   the effect of the first wrong token on the rest of an output
search_inspection   traces a search, lists alternative tokens, replaces a token
search_example      traces a search on a small built-in decoder, an example from a lecture
comparison          compares two runs on the same sentences
attention           checks whether a run has attention over source tokens
"""

from seqloom.analysis.comparison import RunComparison, compare_runs
from seqloom.analysis.error_propagation import ErrorPropagation, measure_error_propagation
from seqloom.analysis.explain.backward import explain_backward
from seqloom.analysis.explain.explainer import explain
from seqloom.analysis.explain.explanation import Explanation
from seqloom.analysis.forward_trace import ForwardTrace, trace_forward
from seqloom.analysis.gradient_flow import GradientFlow, measure_gradients
from seqloom.analysis.gradients import (
    GradientProfile,
    GradientTrace,
    profile_gradients,
    trace_gradients,
)
from seqloom.analysis.lookup import LookupResult, LookupTable, look_up
from seqloom.analysis.loss_gradient_norms import LossGradientTrace, trace_loss_gradients
from seqloom.analysis.loss_gradients import LossGradients, measure_loss_gradients
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
