"""Every task: which recipe, where its data lie, how it is judged, and what others reach."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Task:
    """One row of docs/results/tasks.md, named by its recipe; behind a full stop, by what is changed.

    what:      the task, in words
    folder:    where its data lie in the folder of all data; None: they come with seqloom
    scores:    by which it is judged, as journals call them, the most telling first
    published: what others reach, in the same scores
    source:    who does, and what is different there
    runs:      the settings of each run that the row is the mean of; "" is the recipe as it is
    changes:   settings of all its runs
    """

    what: str
    folder: str | None
    scores: tuple[str, ...]
    published: str = "–"
    source: str = ""
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"": ()})
    changes: tuple[str, ...] = ()


def _scene(name: str) -> tuple[str, ...]:
    return tuple(f"data.{split}.scene={name}" for split in ("train", "dev", "test"))


def _with_and_without_preset(recipe: str, task: Task) -> dict[str, Task]:
    """A recipe for low resource, and the same with the preset for usual amounts."""
    plain = replace(task, what=f"{task.what}, preset small", changes=("preset=small",))
    return {recipe: task, f"{recipe}.preset-small": plain}


BLEU = ("bleu", "chrf2")
CAPTIONS = ("bleu-1", "bleu-4", "bleu-1-with-punctuation", "bleu")
"""The first two without punctuation, the others with it."""
ERRORS = ("word-error-rate", "phoneme-error-rate")
FURTHER_SCENES = ("hotel", "univ", "zara1", "zara2")
"""Than eth, which the recipe leaves out of training."""

LOADS = '["HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL"]'
"""What is known of the hours to come beside the temperature."""
HORIZONS = {48: "0.158; 0.319", 168: "0.183; 0.346", 336: "0.222; 0.387", 720: "0.269; 0.435"}
"""Further than the recipe's 24 hours, with what is published."""

TASKS: dict[str, Task] = {
    "wikitext2-lstm": Task(
        "language model, words (WikiText-2), LSTM",
        "lm",
        ("perplexity",),
        "99.3; 87.0",
        "LSTM, Grave et al. 2017; tied variational LSTM, Inan et al. 2017",
    ),
    "wikitext2-transformer": Task(
        "language model, words (WikiText-2), Transformer",
        "lm",
        ("perplexity",),
        "99.3; 87.0",
        "recurrent ones: Grave et al. 2017, Inan et al. 2017",
    ),
    "shakespeare-lstm": Task(
        "language model, characters (tiny Shakespeare), LSTM",
        "lm",
        ("nats-per-character", "nats-per-token"),
        "1.47",
        "nanoGPT, a Transformer of 10.7 M parameters, best validation loss",
    ),
    "shakespeare-transformer": Task(
        "language model, characters (tiny Shakespeare), Transformer",
        "lm",
        ("nats-per-character", "nats-per-token"),
        "1.47",
        "nanoGPT, 10.7 M parameters, best validation loss",
    ),
    "flickr8k": Task(
        "captions of photographs (Flickr8k), CNN and Transformer",
        "flickr8k",
        CAPTIONS,
        "67; 19.5",
        "Xu et al. 2015, soft attention; its CNN learned from ImageNet, ours from nothing",
    ),
    "flickr8k-risk": Task(
        "captions of photographs (Flickr8k), the same trained for BLEU (minimum risk)",
        "flickr8k",
        CAPTIONS,
        "67; 19.5",
        "Xu et al. 2015, as above",
    ),
    "flickr8k-attention": Task(
        "captions of photographs (Flickr8k), CNN and recurrent decoder",
        "flickr8k",
        CAPTIONS,
        "67; 19.5",
        "Xu et al. 2015, as above",
    ),
    "flickr8k-patches": Task(
        "captions of photographs (Flickr8k), patches and Transformer",
        "flickr8k",
        CAPTIONS,
        "67; 19.5",
        "Xu et al. 2015, as above",
    ),
    "eth-ucy": Task(
        "paths of pedestrians (ETH/UCY), mean of five scenes",
        "eth-ucy",
        ("ade", "fde"),
        "0.70; 1.52",
        "LSTM, Gupta et al. 2018; a straight line reaches 0.79; 1.59",
        {"": (), **{scene: _scene(scene) for scene in FURTHER_SCENES}},
    ),
    "etth1": Task(
        "oil temperature from its past (ETTh1, 24 hours)",
        "ett",
        ("mse", "mae"),
        "0.098; 0.247",
        "Informer, one variable, Zhou et al. 2021",
    ),
    "etth1.with-loads": Task(
        "oil temperature from its past and the loads (ETTh1, 24 hours)",
        "ett",
        ("mse", "mae"),
        "0.098; 0.247",
        "Informer, as above",
        changes=tuple(f"data.{split}.context={LOADS}" for split in ("train", "dev", "test")),
    ),
    **{
        f"etth1.{hours}": Task(
            f"oil temperature from its past (ETTh1, {hours} hours)",
            "ett",
            ("mse", "mae"),
            published,
            "Informer, as above",
            changes=(f"task.predict={hours}",),
        )
        for hours, published in HORIZONS.items()
    },
    "django-code": Task(
        "English to Python (Django)",
        "django-code",
        ("exact-match-tokenised", "bleu-of-sentences", "bleu-tokenised"),
        "45.1; 63.4",
        "attentional NMT, in Ling et al. 2016, its BLEU probably a mean over lines; 73.7 exact by a grammar, TranX 2018",
    ),
    "django-code.without-copying": Task(
        "English to Python (Django), nothing copied",
        "django-code",
        ("exact-match-tokenised", "bleu-of-sentences", "bleu-tokenised"),
        "45.1; 63.4",
        "attentional NMT, as above",
        changes=("model.decoder.copying=false",),
    ),
    "nl2bash": Task(
        "English to Bash (NL2Bash)",
        "nl2bash",
        ("exact-match-tokenised", "bleu-tokenised", "bleu"),
        "–",
        "Lin et al. 2018 judge by hand, on a filtered split",
    ),
    "conala": Task(
        "English to Python (CoNaLa)",
        "conala",
        ("bleu", "exact-match-tokenised"),
        "10.6; –",
        "sequence to sequence, Yin et al. 2018, by the corpus' own BLEU, which cuts marks from words, too",
    ),
    "e2e": Task(
        "restaurant facts to text (E2E)",
        "e2e-nlg",
        BLEU,
        "65.9",
        "TGen, Novikova et al. 2017",
    ),
    "asset-simplify": Task(
        "simpler sentences (ASSET)",
        "asset-simplification",
        ("sari", "bleu"),
        "40.1",
        "ACCESS 2020, which learned from 300,000 pairs; there are 20,000 here",
    ),
    "scitldr": Task(
        "one-sentence summaries (SciTLDR)",
        "scitldr",
        ("rouge-1", "rouge-l", "bleu"),
        "43.3; 35.0",
        "BART, pre-trained, Cachola et al. 2020; PACSUM 19.3; 15.1",
    ),
    "cmudict-g2p": Task(
        "English words to phones (CMUdict)",
        "cmudict",
        ERRORS,
        "31; –",
        "Transformer on the current dictionary, g2p-seq2seq; Phonetisaurus 33.9",
    ),
    "sigmorphon-g2p": Task(
        "French words to phones (SIGMORPHON 2020); all 15 languages: pronunciation.md",
        "sigmorphon2020-g2p",
        ERRORS,
        "–",
        "published figures are means of 15 languages",
    ),
    **_with_and_without_preset(
        "menyo20k-yo-en",
        Task("Yoruba to English, 10,070 pairs (MENYO-20k)", "menyo20k-yo-en", BLEU),
    ),
    **_with_and_without_preset(
        "menyo20k-en-yo",
        Task("English to Yoruba, 10,070 pairs (MENYO-20k)", "menyo20k-yo-en", BLEU),
    ),
    **_with_and_without_preset(
        "iwslt14-lowres-de-en",
        Task(
            "German to English, 8,627 pairs (IWSLT14)",
            "iwslt14-de-en",
            ("bleu-tokenised", "bleu"),
            "16.6",
            "Sennrich and Zhang 2019, on 5,000 pairs, cased",
        ),
    ),
    "language-id": Task(
        "the language of a sentence (Tatoeba, bundled)", None, ("accuracy", "macro-f1")
    ),
    "capitals": Task(
        "German capitals restored, character by character (Tatoeba, bundled)",
        None,
        ("macro-f1", "accuracy", "exact-match"),
    ),
}
FOLDERS = {"multi30k": "multi30k", **{name: task.folder for name, task in TASKS.items()}}
"""Where the data of a recipe lie in the folder of all data, by its name or how that begins."""


def folder_of(recipe: str) -> str | None:
    """The sub-folder of a recipe's data; None if it needs none."""
    found = [folder for name, folder in FOLDERS.items() if recipe.startswith(name)]
    return found[0] if found else None


def recipe_of(name: str) -> str:
    """The bundled recipe of a row: rows that differ in settings have a second name after a dot."""
    return name.partition(".")[0]


def label_of(recipe: str, run: str) -> str:
    """The name of a result."""
    return f"{recipe}.{run}" if run else recipe
