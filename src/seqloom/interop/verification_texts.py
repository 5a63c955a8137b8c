"""Texts on which an exported model is compared with the run that it was exported from."""

from itertools import islice

import numpy as np

from seqloom.core.errors import SeqloomError
from seqloom.data.example import Split
from seqloom.data.readers.splits import read_split
from seqloom.inference.run import Run
from seqloom.text.preprocessing import normalise
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import SPECIAL_TOKENS

COUNT = 50
MAX_GENERATED = 12
SPLITS: tuple[Split, ...] = ("test", "dev", "train")


def verification_texts(run: Run) -> list[str]:
    """Return the first source texts of the run's data.

    If the data cannot be read, return generated texts.
    """
    tokenizer = run.task.source_tokenizer
    assert tokenizer is not None
    for split in SPLITS:
        try:
            examples = list(islice(read_split(run.config.data, split), COUNT))
        except SeqloomError:
            continue
        # The exported tokenizer does not convert texts to the Unicode form of the run.
        form = tokenizer.preprocessing.normalization
        texts = [normalise(example.source.strip(), form) for example in examples]
        texts = [text for text in texts if text]
        if texts:
            return texts
    return _generated_texts(tokenizer)


def _generated_texts(tokenizer: Tokenizer) -> list[str]:
    """Return texts that consist of random pieces of the tokenizer."""
    random = np.random.default_rng(0)
    lengths = random.integers(1, MAX_GENERATED + 1, COUNT)
    first = len(SPECIAL_TOKENS)
    texts = [
        tokenizer.decode(random.integers(first, tokenizer.size, length).tolist()).strip()
        for length in lengths
    ]
    return [text for text in texts if text]
