"""Captioning: generates a text that describes an image."""

from collections.abc import Sequence

from seqloom.core.signature import Pixels, Signature, Tokens
from seqloom.data.example import Example
from seqloom.data.readers.images import read_pixels
from seqloom.metrics.bleu import bleu, bleu_1_with_punctuation, bleu_by_order, chrf
from seqloom.metrics.error_rates import exact_match
from seqloom.metrics.score import Score
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.tokenizer import Tokenizer


class Captioning(TokenTask):
    """Generates a caption for an image.

    size:   height and width, in pixels, of the images that the model processes
    margin: images are read with a height and width of `size` + `margin` pixels. The model crops
            them to `size`
    """

    def __init__(self, target: Tokenizer, size: int, margin: int) -> None:
        self.target_tokenizer = target
        self.signature = Signature(Pixels(3, size, size), Tokens(target.size), shared=False)
        self.image_size = size + margin

    def prepare(self, text: str) -> ModelInput:
        """Read the image whose path is `text`."""
        assert self.image_size is not None
        return ModelInput(None, (), read_pixels(text.strip(), self.image_size))

    def source_text(self, example: Example) -> str:
        return example.source

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
