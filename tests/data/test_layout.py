"""PaddedLayout: its batches contain the examples of the corpus."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.corpora import SyntheticConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.batch import Padded
from seqloom.data.batching.collate import collate
from seqloom.data.batching.layout import PaddedLayout
from seqloom.data.corpus.corpus import Corpus, build_corpus
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation.request import CorpusRequest
from seqloom.text.build import train_tokenizer

EXAMPLES = 60


@pytest.fixture(scope="module", params=[True, False], ids=["pairs", "targets"])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    letters = train_tokenizer(CharactersConfig(), ["abcdefghijklmnopqrstuvwxyz"], (), False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("layout")))
        synthetic = SyntheticConfig(task="sort", examples=EXAMPLES)
        data = DataConfig(train=synthetic, dev=synthetic)
        source = TextModality(letters) if request.param else None
        return build_corpus(CorpusRequest(data, "train", source, letters))


def equal(first: Padded | None, second: Padded | None) -> bool:
    if first is None or second is None:
        return first is second
    return torch.equal(first.values, second.values) and torch.equal(first.lengths, second.lengths)


@given(rows=st.lists(st.integers(0, EXAMPLES - 1), min_size=1, max_size=20))
def test_gathering_equals_collating_single_examples(corpus: Corpus, rows: list[int]) -> None:
    sources = None if corpus.sources is None else [corpus.source(row) for row in rows]
    expected = collate(sources, [corpus.target(row) for row in rows])
    batch = PaddedLayout(99).gather(corpus, np.array(rows))
    for name in ("source", "inputs", "targets"):
        assert equal(getattr(batch, name), getattr(expected, name))


def test_plan_contains_every_example_once(corpus: Corpus) -> None:
    layout = PaddedLayout(50)
    plan = layout.plan(corpus.source_lengths, corpus.target_lengths, 0, 0)
    rows = [row for batch in plan for row in layout.gather(corpus, batch).targets.values.tolist()]
    texts = sorted([id_ for id_ in row if id_] for row in rows)
    assert [text[:-1] for text in texts] == sorted(
        corpus.target(index).tolist() for index in range(EXAMPLES)
    )
