"""A layout's batches hold what the corpus holds."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.corpora import SyntheticConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.batch import Padded
from seqloom.data.collate import collate
from seqloom.data.corpus import Corpus, CorpusRequest, build_corpus
from seqloom.data.layout import PaddedLayout
from seqloom.text.build import train_tokenizer

EXAMPLES = 60


@pytest.fixture(scope="module", params=[True, False], ids=["pairs", "targets"])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    letters = train_tokenizer(CharactersConfig(), ["abcdefghijklmnopqrstuvwxyz"], (), False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("layout")))
        synthetic = SyntheticConfig(task="sort", examples=EXAMPLES)
        data = DataConfig(train=synthetic, dev=synthetic)
        source = letters if request.param else None
        return build_corpus(CorpusRequest(data, "train", source, letters))


def equal(one: Padded | None, other: Padded | None) -> bool:
    if one is None or other is None:
        return one is other
    return torch.equal(one.values, other.values) and torch.equal(one.lengths, other.lengths)


@given(rows=st.lists(st.integers(0, EXAMPLES - 1), min_size=1, max_size=20))
def test_gathering_at_once_is_collating_one_by_one(corpus: Corpus, rows: list[int]) -> None:
    sources = None if corpus.source_side is None else [corpus.source(row) for row in rows]
    apart = collate(sources, [corpus.target(row) for row in rows])
    batch = PaddedLayout(99).gather(corpus, np.array(rows))
    for name in ("source", "inputs", "targets"):
        assert equal(getattr(batch, name), getattr(apart, name))


def test_every_example_of_a_corpus_is_in_one_batch_of_its_plan(
    corpus: Corpus, tmp_path: Path
) -> None:
    layout = PaddedLayout(50)
    plan = layout.plan(corpus.source_lengths, corpus.target_lengths, 0, 0)
    rows = [row for each in plan for row in layout.gather(corpus, each).targets.values.tolist()]
    texts = sorted([id_ for id_ in row if id_] for row in rows)
    assert [text[:-1] for text in texts] == sorted(
        corpus.target(place).tolist() for place in range(EXAMPLES)
    )
