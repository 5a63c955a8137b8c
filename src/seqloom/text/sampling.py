"""Subwords cut in random ways, so that a model meets a word in many spellings."""

import threading
from collections.abc import Callable
from typing import TypeVar

import sentencepiece

from seqloom.text.subwords import Subwords
from seqloom.text.tokenizer import content_digest

Result = TypeVar("Result")

_seeding = threading.Lock()


class SampledSubwords(Subwords):
    """The same pieces, but `encode` draws one of the ways to cut a text.

    BPE leaves out each merge with probability alpha (Provilkov et al. 2020); a unigram model
    draws in proportion to p^alpha (Kudo 2018). A drawn cut decodes to the same text.
    """

    def __init__(self, plain: Subwords, alpha: float, seed: int) -> None:
        super().__init__(plain.model, plain.tags, plain.lowercase)
        self.alpha = alpha
        self.seed = seed

    @property
    def digest(self) -> str:
        drawn = [self.alpha, self.seed, sentencepiece.__version__]
        return content_digest({"plain": super().digest, "drawn": drawn})

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(
            self._utf8(text), enable_sampling=True, alpha=self.alpha, nbest_size=-1
        )


def drawing_from(seed: int, work: Callable[[], Result]) -> Result:
    """Do work that encodes by `SampledSubwords`, with draws that depend on the seed alone.

    sentencepiece has one generator per thread, seeded when the thread first draws: so every seed
    needs a thread of its own.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again by whoever waits
            errors.append(error)

    with _seeding:
        sentencepiece.set_random_generator_seed(seed % 2**32)
        thread = threading.Thread(target=run, name="seqloom-sampling")
        thread.start()
        thread.join()
    if errors:
        raise errors[0]
    return results[0]
