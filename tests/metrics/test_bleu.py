"""BLEU, chrF and TER by sacrebleu."""

import subprocess
import sys

import pytest
import sacrebleu
from metric_examples import OUTPUTS, REFERENCES, single_references

from seqloom.metrics.bleu import bleu, chrf, mean_sentence_bleu, ter


def test_scores_equal_those_of_sacrebleu() -> None:
    references = single_references(REFERENCES)
    assert bleu(OUTPUTS, references).value == sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES]).score
    assert chrf(OUTPUTS, references).value == sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES]).score
    assert ter(OUTPUTS, references).value == sacrebleu.corpus_ter(OUTPUTS, [REFERENCES]).score


def test_signatures_contain_all_settings_and_the_version() -> None:
    version = sacrebleu.__version__
    single = single_references(REFERENCES)
    double = [[*references, "another"] for references in single]
    ragged = [["a", "b"], ["c"], ["d"]]
    assert bleu(OUTPUTS, single).signature == (
        f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"
    )
    assert bleu(OUTPUTS, double, lowercase=True, tokenize="char").signature == (
        f"nrefs:2|case:lc|eff:no|tok:char|smooth:exp|version:{version}"
    )
    assert chrf(OUTPUTS, ragged, lowercase=True).signature == (
        f"nrefs:var|case:lc|eff:yes|nc:6|nw:0|space:no|version:{version}"
    )
    assert ter(OUTPUTS, single).signature == (
        f"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:{version}"
    )


def test_mean_sentence_bleu_weights_short_and_long_lines_equally() -> None:
    outputs, references = ["else :", OUTPUTS[0]], [["else :"], [REFERENCES[0]]]
    second = sacrebleu.sentence_bleu(OUTPUTS[0], [REFERENCES[0]], tokenize="none").score
    score = mean_sentence_bleu(outputs, references)
    assert score.value == pytest.approx((100 + second) / 2)
    assert score.signature == (
        f"nrefs:1|case:mixed|eff:yes|tok:none|smooth:exp|version:{sacrebleu.__version__}, "
        "mean of 2 sentences"
    )


def test_lowercase_ignores_case() -> None:
    upper_case, references = [line.upper() for line in REFERENCES], single_references(REFERENCES)
    for metric in [bleu, chrf]:
        assert metric(upper_case, references).value < 50
        assert metric(upper_case, references, lowercase=True).value == pytest.approx(100)


@pytest.mark.slow
def test_importing_the_metrics_does_not_import_sacrebleu() -> None:
    program = "import sys, seqloom.metrics; sys.exit(any(n in sys.modules for n in ('sacrebleu', 'lxml')))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
