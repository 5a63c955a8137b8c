"""Searches that are compared on the dev split, to choose the search of a recipe."""

from collections.abc import Iterator
from pathlib import Path

from seqloom.config.schema.decoding import BeamConfig, DecodingConfig, MinimumBayesRiskConfig
from seqloom.data.example import Split

SEARCHES: dict[str, DecodingConfig] = {
    "beam 10": BeamConfig(width=10),
    "beam 5": BeamConfig(width=5),
    "MBR, beam 10": MinimumBayesRiskConfig(beam=10, samples=0, utility="bleu"),
    "MBR, beam 20": MinimumBayesRiskConfig(beam=20, samples=0, utility="bleu"),
    "beam 10, length penalty 0.8": BeamConfig(width=10, length_penalty=0.8),
    "MBR, beam 10 and 32 samples": MinimumBayesRiskConfig(beam=10, samples=32, utility="bleu"),
    "beam 10, length penalty 0.6": BeamConfig(width=10, length_penalty=0.6),
}
"""MBR is minimum Bayes risk decoding with BLEU as its utility."""
SPLITS: tuple[Split, ...] = ("dev", "test")


def score_searches(folder: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """For each search, yield its name and the BLEU of its outputs on the dev and the test split.

    folder: run folder
    """
    import seqloom
    from seqloom.data.readers.splits import merge_references, read_split
    from seqloom.metrics.bleu import bleu

    run = seqloom.load(folder)
    examples = {split: list(read_split(run.config.data, split)) for split in SPLITS}
    if run.config.data.merge_references:
        examples = {split: merge_references(pairs) for split, pairs in examples.items()}
    for label, search in SEARCHES.items():
        scores: dict[str, float] = {}
        for split, items in examples.items():
            sources = [run.task.source_text(example) for example in items]
            predictions = run.predictor.predict(sources, search)
            texts = run.task.scored_texts([outputs[0].text for outputs in predictions], items)
            scores[split] = bleu(texts.outputs, texts.references).value
        yield label, scores
