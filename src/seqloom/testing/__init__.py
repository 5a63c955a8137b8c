"""Functions that check extensions. Call them in the tests of a package that extends seqloom.

Each check takes the class or function of an extension and its settings, as they would be in a
recipe. It raises AssertionError if the extension does not do what seqloom relies on:

    from seqloom.testing import check_score

    def test_cosine() -> None:
        check_score(Cosine, temperature=0.5)
"""

from seqloom.testing.models import check_decoder, check_encoder, check_score
from seqloom.testing.texts import check_metric, check_reader, check_rule, check_tokenizer

__all__ = [
    "check_decoder",
    "check_encoder",
    "check_metric",
    "check_reader",
    "check_rule",
    "check_score",
    "check_tokenizer",
]
