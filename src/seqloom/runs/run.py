"""Run: a trained model in use."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from seqloom.config.data import DataConfig
from seqloom.config.decoding import DecodingConfig
from seqloom.config.engine import EngineConfig
from seqloom.config.kinds import EngineKind
from seqloom.config.run import RunConfig
from seqloom.config.task import LabelsConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.core.signature import Nothing, Pixels
from seqloom.data.example import Split
from seqloom.data.splits import merge_references, read_split
from seqloom.data.text_windows import shape_of
from seqloom.metrics.bleu import lowercased_bleu
from seqloom.models.seq2seq import Model
from seqloom.runs.aligning import stored_heads
from seqloom.runs.bundle import Bundle, load_bundle
from seqloom.runs.choices import chosen_decoding, chosen_engine, drawn, refuse_too_many
from seqloom.runs.devices import best_device
from seqloom.runs.directions import Directions
from seqloom.runs.engine.choose import TORCH, Choice, Engines
from seqloom.runs.engine.kept import Origin
from seqloom.runs.ensemble import join
from seqloom.runs.evaluate import Report, evaluate, likelihood_scores
from seqloom.runs.heads import ALL_HEADS
from seqloom.runs.parts import score_parts
from seqloom.runs.prediction import Prediction
from seqloom.runs.predictor import Advance, Predictor
from seqloom.runs.wish import WORDS_ALONE, Wish, refuse_other_than_texts
from seqloom.tasks.token_task import TokenTask
from seqloom.text.vocabulary import SPECIAL


class Run:
    """A run folder, loaded, or several as one. `seqloom.load(folder)` makes one.

    partners: the folders of the other members of an ensemble; recipe and folder are the first's
    """

    def __init__(
        self, bundle: Bundle, device: torch.device, engine: EngineKind | None = None
    ) -> None:
        if not isinstance(bundle.task, TokenTask):
            raise ConfigError(
                f"{bundle.folder}: forecasts numbers; use `seqloom forecast`, or in Python "
                "seqloom.load_forecaster"
            )
        self.folder: Path = bundle.folder
        self.partners: tuple[Path, ...] = bundle.partners
        self.config: RunConfig = bundle.config
        self.model: Model = bundle.model
        self.task: TokenTask = bundle.task
        self.directions = Directions.of(str(bundle.folder), bundle.config)
        # An ensemble's attention is a mean over its members, which has no heads to choose among.
        heads = (ALL_HEADS, "") if self.partners else stored_heads(self.folder, bundle.digest)
        self.predictor = Predictor(bundle.model, bundle.task, device, choice=heads[0])
        self.heads_note, self.weights_digest = heads[1], bundle.digest
        self.engine: EngineConfig = chosen_engine(bundle.config.engine, engine)
        how = f"{bundle.digest} {bundle.config.model.model_dump_json()}"
        origin = Origin(bundle.folder, bundle.model, how)
        self.engines = Engines(origin, bundle.task, on_cpu=device.type == "cpu")

    @property
    def name(self) -> str:
        """Its folder; of an ensemble the folders of all members."""
        return " + ".join(map(str, (self.folder, *self.partners)))

    def translate(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        decoding: DecodingConfig | None = None,
        attention: bool | None = None,
        prefixes: Sequence[str] | None = None,
        to: str | Sequence[str] | None = None,
    ) -> list[Prediction]:
        """The best output for each text, in order; a blank text gives a blank one.

        attention: where each piece looked, too; None: unless the engine was set to ctranslate2
                   or compiled, which do not know. Without it, other engines than torch may answer.
        prefixes:  how each output must begin, in words
        to:        the target language, where the run has learned several: "fr"; or the way there,
                   ["en", "fr"] through English
        """
        wish = Wish(attention=self._attention(attention), prefixes=prefixes, to=to)
        return [best[0] for best in self.predict(texts, wish, beam=beam, decoding=decoding)]

    def translate_n_best(
        self,
        texts: Sequence[str],
        n_best: int,
        *,
        beam: int | None = None,
        decoding: DecodingConfig | None = None,
        attention: bool | None = None,
        prefixes: Sequence[str] | None = None,
    ) -> list[list[Prediction]]:
        """The n best outputs for each text, best first."""
        wish = Wish(n_best, self._attention(attention), prefixes)
        return self.predict(texts, wish, beam=beam, decoding=decoding)

    def predict(
        self,
        texts: Sequence[str],
        wish: Wish,
        *,
        beam: int | None = None,
        decoding: DecodingConfig | None = None,
    ) -> list[list[Prediction]]:
        """What `translate` and `translate_n_best` do, for those who read in portions."""
        if isinstance(self.task.signature.source, Nothing):
            raise ConfigError(
                f"{self.folder}: is a language model, which has no source to translate; "
                "use `complete`"
            )
        refuse_other_than_texts(texts)
        chosen = chosen_decoding(self.config.decoding, beam, decoding)
        refuse_too_many(chosen, wish.n_best)
        *stops, last = self.directions.path(wish.to)
        for stop in stops:
            between = replace(WORDS_ALONE, first=wish.first)
            found = self._ask(self.directions.put(texts, stop, wish.first), chosen, between)
            texts = [best[0].text for best in found]
        asked = self.directions.put(texts, last, wish.first)
        return [
            [self.directions.shown(one, last) for one in outputs]
            for outputs in self._ask(asked, chosen, wish)
        ]

    def _ask(
        self, texts: Sequence[str], decoding: DecodingConfig, wish: Wish
    ) -> list[list[Prediction]]:
        choice = self.engines.choose(self.engine, decoding, wish)
        return choice.given(self.predictor).predict(texts, decoding, wish)

    def choose_engine(
        self,
        wish: Wish = WORDS_ALONE,
        *,
        beam: int | None = None,
        decoding: DecodingConfig | None = None,
    ) -> Choice:
        """Which engine answers such a request, and why; it is made ready if it was not yet."""
        return self.engines.choose(
            self.engine, chosen_decoding(self.config.decoding, beam, decoding), wish
        )

    def _attention(self, asked: bool | None) -> bool:
        return self.engine.kind in ("auto", "torch") if asked is None else asked

    def caption(
        self,
        images: Sequence[str | Path],
        *,
        beam: int | None = None,
        decoding: DecodingConfig | None = None,
        attention: bool | None = None,
    ) -> list[Prediction]:
        """What is on each image: files, or members of archives as photos.zip/dog.jpg.

        attention: as in `translate`
        """
        if not isinstance(self.task.signature.source, Pixels):
            raise ConfigError(f"{self.folder}: reads no images; a run of task 'captioning' does")
        refuse_other_than_texts(images)
        wish = Wish(attention=self._attention(attention))
        places = [str(image) for image in images]
        return [best[0] for best in self.predict(places, wish, beam=beam, decoding=decoding)]

    def complete(
        self, prompts: Sequence[str], *, decoding: DecodingConfig | None = None, n_best: int = 1
    ) -> list[list[Prediction]]:
        """Texts that begin with each prompt; a blank prompt lets the model begin.

        Samples, as the recipe draws them, unless told otherwise. Running text has no END: it goes
        on up to max_length, or with one_line to the end of a line.
        """
        if not isinstance(self.task.signature.source, Nothing):
            raise ConfigError(
                f"{self.folder}: translates, and cannot complete a beginning without a source; "
                "use `translate`"
            )
        refuse_other_than_texts(prompts)
        chosen = decoding or drawn(self.config.decoding, n_best)
        refuse_too_many(chosen, n_best)
        return self.predictor.predict(prompts, chosen, Wish(n_best, attention=False))

    def label(self, texts: Sequence[str], *, every: bool = False) -> list[list[Prediction]]:
        """The label of each text, or the labels of its tokens; a blank text gets a blank one.

        every: all labels of each text, the likeliest first, where a text has one
        """
        if not isinstance(self.config.task, LabelsConfig):
            raise ConfigError(
                f"{self.folder}: is for {self.config.task.kind} and gives no labels; label with a "
                "run whose recipe says task.kind = 'labels'"
            )
        count = self.task.target_tokenizer.size - len(SPECIAL) if every else 1
        return self.predict(texts, Wish(count, attention=False), beam=count if every else None)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        attention: bool = True,
        heads: bool = False,
    ) -> list[Prediction]:
        """The model's own probabilities of given targets, token by token.

        A language model reads nothing: its sources are blank.
        heads: with attention: that of each layer and head, too
        """
        refuse_other_than_texts(sources)
        refuse_other_than_texts(targets)
        if len(sources) != len(targets):
            raise DataError(
                f"{len(sources):,} sources and {len(targets):,} targets cannot be paired; "
                "give as many of one as of the other"
            )
        exponent = self.config.decoding.length_exponent
        asked = self.directions.put(sources, None)
        return self.predictor.score(
            asked, targets, Wish(attention=attention, heads=heads), exponent
        )

    def evaluate(
        self,
        split: Split = "test",
        *,
        beam: int | None = None,
        decoding: DecodingConfig | None = None,
        data: DataConfig | None = None,
        lowercase: bool = False,
        advance: Advance | None = None,
    ) -> Report:
        """Scores on a split of the recipe's data, or of other data of the same kind.

        lowercase: BLEU when case does not count, too.
        Scores are those of the model itself, by torch, unless the engine was set to ctranslate2.
        """
        source = self.config.data if data is None else data
        pairs = list(read_split(source, split))
        examples = merge_references(pairs) if source.merge_references else pairs
        chosen = chosen_decoding(self.config.decoding, beam, decoding)
        choice = TORCH
        if self.engine.kind == "ctranslate2":  # compiled code is for one text at a time
            choice = self.engines.choose(self.engine, chosen, WORDS_ALONE)
        predictor = choice.given(self.predictor)
        scores, buckets, outputs, cut_off = evaluate(predictor, examples, chosen, advance)
        if lowercase and outputs:
            scores.append(lowercased_bleu(outputs, [one.references for one in examples]))
        scores += likelihood_scores(self.predictor, pairs, shape_of(source, split))
        return Report(
            run=self.name,
            members=1 + len(self.partners),
            split=split,
            sentences=len(examples),
            scores=tuple(scores),
            by_length=tuple(buckets),
            examples=tuple(examples),
            outputs=tuple(outputs),
            parts=score_parts(self.task, examples, outputs),
            cut_off=cut_off,
            decoding=chosen,
            data=source,
            engine=choice.name,
        )


def load(
    folder: str | Path | Sequence[str | Path],
    settings: Sequence[str] = (),
    engine: EngineKind | None = None,
) -> Run:
    """Load a run folder, wherever it is now; everything in it is checked first.

    A list of folders is loaded as an ensemble: at every step the mean of their probabilities.

    settings: changes to its recipe that the weights still fit, for example
    ["model.decoder.attention.selection=argmax"] to look hard with a model that learned softly.
    engine: what searches for outputs, "auto", "torch", "compiled" or "ctranslate2"; left out: as
    the recipe says ("auto", unless it says otherwise).
    """
    device = best_device()
    folders = [folder] if isinstance(folder, str | Path) else list(folder)
    if not folders:
        raise ConfigError("no run folder was given; an ensemble needs one or more")
    bundles = [load_bundle(Path(each), device, settings) for each in folders]
    return Run(join(bundles), device, engine)
