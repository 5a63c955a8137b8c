"""Captioning: generates a text that describes an image."""

from collections.abc import Sequence

from seqloom.data.example import Example
from seqloom.metrics.bleu import bleu, bleu_1_with_punctuation, bleu_by_order, chrf
from seqloom.metrics.error_rates import exact_match
from seqloom.metrics.score import Score
from seqloom.tasks.token_task import TokenTask


class Captioning(TokenTask):
    """Generates a caption for an image."""

    def compute_scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """Return BLEU, chrF, exact match, and the scores that papers on captioning report.

        These papers report BLEU-1 to BLEU-4 without punctuation, and BLEU-1 with punctuation. Exact
        match is useful for captions of generated scenes.
        """
        references = [example.references for example in examples]
        return [
            bleu(outputs, references, lowercase=self.target_tokenizer.preprocessing.lowercase),
            *bleu_by_order(outputs, references),
            bleu_1_with_punctuation(outputs, references),
            chrf(outputs, references, lowercase=self.target_tokenizer.preprocessing.lowercase),
            exact_match(outputs, references),
        ]
