"""The measured tasks: recipe, data folder, scores and published results."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class MeasuredTask:
    """One row of docs/results/tasks.md.

    The key of a task in TASKS is the name of its recipe, with a suffix after a dot for a variant.

    description: the task
    folder:      sub-folder of its data. None for bundled data
    scores:      scores in the table, most important first
    published:   published results in the same scores
    source:      origin of the published results and differences to ours
    runs:        name and settings of each run; the row shows their mean. "" is the unchanged recipe
    settings:    settings of all runs
    """

    description: str
    folder: str | None
    scores: tuple[str, ...]
    published: str = "–"
    source: str = ""
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"": ()})
    settings: tuple[str, ...] = ()


def _scene_settings(name: str) -> tuple[str, ...]:
    return tuple(f"data.{split}.scene={name}" for split in ("train", "dev", "test"))


def _with_and_without_preset(recipe: str, task: MeasuredTask) -> dict[str, MeasuredTask]:
    """A low-resource recipe, and the same recipe with the preset `small`."""
    with_small = replace(
        task, description=f"{task.description}, preset small", settings=("preset=small",)
    )
    return {recipe: task, f"{recipe}.preset-small": with_small}


BLEU = ("bleu", "chrf2")
CAPTIONS = ("bleu-1", "bleu-4", "bleu-1-with-punctuation", "bleu")
"""The first two ignore punctuation, the others include it."""
ERRORS = ("word-error-rate", "phoneme-error-rate")
OTHER_SCENES = ("hotel", "univ", "zara1", "zara2")
"""The test scenes besides eth, which is the test scene of the recipe."""

LOADS = '["HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL"]'
"""Columns that are known for the forecast hours."""
HORIZONS = {48: "0.158; 0.319", 168: "0.183; 0.346", 336: "0.222; 0.387", 720: "0.269; 0.435"}
"""Horizons in hours beyond the 24 hours of the recipe, with published results."""

TASKS: dict[str, MeasuredTask] = {
    "wikitext2-lstm": MeasuredTask(
        "language model, words (WikiText-2), LSTM",
        "lm",
        ("perplexity",),
        "99.3; 87.0",
        "LSTM, Grave et al. 2017; tied variational LSTM, Inan et al. 2017",
    ),
    "wikitext2-transformer": MeasuredTask(
        "language model, words (WikiText-2), Transformer",
        "lm",
        ("perplexity",),
        "99.3; 87.0",
        "recurrent models: Grave et al. 2017, Inan et al. 2017",
    ),
    "shakespeare-lstm": MeasuredTask(
        "language model, characters (tiny Shakespeare), LSTM",
        "lm",
        ("nats-per-character", "nats-per-token"),
        "1.47",
        "nanoGPT, a Transformer of 10.7 M parameters, best validation loss",
    ),
    "shakespeare-transformer": MeasuredTask(
        "language model, characters (tiny Shakespeare), Transformer",
        "lm",
        ("nats-per-character", "nats-per-token"),
        "1.47",
        "nanoGPT, 10.7 M parameters, best validation loss",
    ),
    "flickr8k": MeasuredTask(
        "image captions (Flickr8k), CNN and Transformer",
        "flickr8k",
        CAPTIONS,
        "67; 19.5",
        "Xu et al. 2015, soft attention; its CNN is pre-trained on ImageNet, ours is not",
    ),
    "flickr8k-risk": MeasuredTask(
        "image captions (Flickr8k), the same with minimum risk training for BLEU",
        "flickr8k",
        CAPTIONS,
        "67; 19.5",
        "Xu et al. 2015, as above",
    ),
    "flickr8k-attention": MeasuredTask(
        "image captions (Flickr8k), CNN and recurrent decoder",
        "flickr8k",
        CAPTIONS,
        "67; 19.5",
        "Xu et al. 2015, as above",
    ),
    "flickr8k-patches": MeasuredTask(
        "image captions (Flickr8k), patches and Transformer",
        "flickr8k",
        CAPTIONS,
        "67; 19.5",
        "Xu et al. 2015, as above",
    ),
    "eth-ucy": MeasuredTask(
        "pedestrian trajectories (ETH/UCY), mean of five scenes",
        "eth-ucy",
        ("ade", "fde"),
        "0.70; 1.52",
        "LSTM, Gupta et al. 2018; a straight line: 0.79; 1.59",
        {"": (), **{scene: _scene_settings(scene) for scene in OTHER_SCENES}},
    ),
    "etth1": MeasuredTask(
        "oil temperature from its history (ETTh1, 24 hours)",
        "ett",
        ("mse", "mae"),
        "0.098; 0.247",
        "Informer, one variable, Zhou et al. 2021",
    ),
    "etth1.with-loads": MeasuredTask(
        "oil temperature from its history and the loads (ETTh1, 24 hours)",
        "ett",
        ("mse", "mae"),
        "0.098; 0.247",
        "Informer, as above",
        settings=tuple(f"data.{split}.context={LOADS}" for split in ("train", "dev", "test")),
    ),
    **{
        f"etth1.{hours}": MeasuredTask(
            f"oil temperature from its history (ETTh1, {hours} hours)",
            "ett",
            ("mse", "mae"),
            published,
            "Informer, as above",
            settings=(f"task.predict={hours}",),
        )
        for hours, published in HORIZONS.items()
    },
    "django-code": MeasuredTask(
        "English to Python (Django)",
        "django-code",
        ("exact-match-tokenised", "bleu-of-sentences", "bleu-tokenised"),
        "45.1; 63.4",
        "attentional NMT, in Ling et al. 2016, BLEU probably a mean over lines; 73.7 exact match with a grammar, TranX 2018",
    ),
    "django-code.without-copying": MeasuredTask(
        "English to Python (Django), without copying",
        "django-code",
        ("exact-match-tokenised", "bleu-of-sentences", "bleu-tokenised"),
        "45.1; 63.4",
        "attentional NMT, as above",
        settings=("model.decoder.copying=false",),
    ),
    "nl2bash": MeasuredTask(
        "English to Bash (NL2Bash)",
        "nl2bash",
        ("exact-match-tokenised", "bleu-tokenised", "bleu"),
        "–",
        "Lin et al. 2018 use human evaluation on a filtered split",
    ),
    "conala": MeasuredTask(
        "English to Python (CoNaLa)",
        "conala",
        ("bleu", "exact-match-tokenised"),
        "10.6; –",
        "sequence to sequence, Yin et al. 2018, with the BLEU script of the corpus, which also separates punctuation",
    ),
    "e2e": MeasuredTask(
        "restaurant facts to text (E2E)",
        "e2e-nlg",
        BLEU,
        "65.9",
        "TGen, Novikova et al. 2017",
    ),
    "asset-simplify": MeasuredTask(
        "sentence simplification (ASSET)",
        "asset-simplification",
        ("sari", "bleu"),
        "40.1",
        "ACCESS 2020, trained on 300,000 pairs; here 20,000",
    ),
    "scitldr": MeasuredTask(
        "one-sentence summaries (SciTLDR)",
        "scitldr",
        ("rouge-1", "rouge-l", "bleu"),
        "43.3; 35.0",
        "BART, pre-trained, Cachola et al. 2020; PACSUM 19.3; 15.1",
    ),
    "cmudict-g2p": MeasuredTask(
        "English words to phonemes (CMUdict)",
        "cmudict",
        ERRORS,
        "31; –",
        "Transformer on the current dictionary, g2p-seq2seq; Phonetisaurus 33.9",
    ),
    "sigmorphon-g2p": MeasuredTask(
        "French words to phonemes (SIGMORPHON 2020); all 15 languages: pronunciation.md",
        "sigmorphon2020-g2p",
        ERRORS,
        "–",
        "published figures are means of 15 languages",
    ),
    **_with_and_without_preset(
        "menyo20k-yo-en",
        MeasuredTask("Yoruba to English, 10,070 pairs (MENYO-20k)", "menyo20k-yo-en", BLEU),
    ),
    **_with_and_without_preset(
        "menyo20k-en-yo",
        MeasuredTask("English to Yoruba, 10,070 pairs (MENYO-20k)", "menyo20k-yo-en", BLEU),
    ),
    **_with_and_without_preset(
        "iwslt14-lowres-de-en",
        MeasuredTask(
            "German to English, 8,627 pairs (IWSLT14)",
            "iwslt14-de-en",
            ("bleu-tokenised", "bleu"),
            "16.6",
            "Sennrich and Zhang 2019, on 5,000 pairs, cased",
        ),
    ),
    "language-id": MeasuredTask(
        "language identification (Tatoeba, bundled)", None, ("accuracy", "macro-f1")
    ),
    "capitals": MeasuredTask(
        "restoring German capital letters (Tatoeba, bundled)",
        None,
        ("macro-f1", "accuracy", "exact-match"),
    ),
}
FOLDERS = {"multi30k": "multi30k", **{name: task.folder for name, task in TASKS.items()}}
"""The sub-folder of the data of each recipe, by its name or a prefix of it."""


def data_folder(recipe: str) -> str | None:
    """The sub-folder of the data of a recipe. None for bundled data."""
    folders = [folder for name, folder in FOLDERS.items() if recipe.startswith(name)]
    return folders[0] if folders else None


def recipe_of(name: str) -> str:
    """The bundled recipe of a task: the part of its name before the first dot."""
    return name.partition(".")[0]


def result_name(task: str, run: str) -> str:
    """The name of the result file of a run."""
    return f"{task}.{run}" if run else task
