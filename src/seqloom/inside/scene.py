"""What every decoder's step has in common: a token goes in, a look is taken, a token comes out."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seqloom.inside import formulas
from seqloom.inside.explanation import Story, Words
from seqloom.models.interface import DecoderModule, Memory
from seqloom.nn.attention import DotScore
from seqloom.nn.copying import Copyable, Copying
from seqloom.nn.embedding import Embedder
from seqloom.nn.labels import LabelReadout
from seqloom.nn.look import Look
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.positions import PositionTable


@dataclass(frozen=True)
class Scene:
    """The step that is told.

    memory: of one source
    tokens: (1, t) START and the t - 1 tokens before the step
    layer:  whose look is laid open, from 0
    head:   the same
    """

    memory: Memory
    tokens: Tensor
    words: Words
    layer: int
    head: int
    story: Story

    @property
    def step(self) -> int:
        """From 1."""
        return self.tokens.shape[1]

    @property
    def visible(self) -> Tensor:
        """(1, 1, 1, S)"""
        return self.memory.mask[:, None, None]

    def now(self, letter: str) -> str:
        return formulas.at(letter, self.step)

    def before(self, letter: str) -> str:
        return formulas.at(letter, self.step - 1)


@dataclass(frozen=True)
class Asking:
    """Who looks at what, in letters and words: with s₃ at h, whose positions are the labels."""

    state: str
    source: str
    labels: tuple[str, ...]


def tell_input(embedder: Embedder, scene: Scene) -> Tensor:
    """The last token as the decoder reads it: (1, D)"""
    story, positions = scene.story, embedder.positions
    token = scene.tokens[:, -1]
    vector = embedder.lookup(token)  # (1, E)
    formula = formulas.embedding(embedder.lookup, scene.before("y"))
    if not isinstance(positions, PositionTable):
        told = embedder.fit(vector)
        how = formulas.fitted(formula, embedder.fit)
        story.tell("embedding", f"{scene.now('x')} = {how}", told[0])
        return told
    table = positions.tabulate(scene.step, vector)
    assert table is not None
    row = table[scene.step - 1 :]  # (1, P)
    story.tell("embedding", f"w = {formula}", vector[0])
    story.tell("position", f"p = {formulas.position(positions, scene.step - 1)}", row[0])
    told = embedder.fit(positions.join_row(vector, row))
    how = formulas.fitted(formulas.placed(positions), embedder.fit)
    story.tell("input", f"{scene.now('x')} = {how}", told[0])
    return told


def tell_look(
    attention: MultiHeadAttention, look: Look, asking: Asking, scene: Scene, note: str = ""
) -> None:
    """One head's way from a query to what it reads, then all heads together."""
    plan, head, story = attention.plan, scene.head, scene.story
    asked = formulas.query(attention, asking.state, head, scene.step - 1)
    story.tell("query", f"q = {asked}", look.queries[0, head, 0])
    found = formulas.key(attention, asking.source, head)
    story.tell("keys", f"k = {found}", look.keys[0, head], asking.labels)
    scores = look.scores[0, head, 0]  # (S,)
    score = attention.score
    if isinstance(score, DotScore) and score.divisor != 1:
        story.tell("products", "q · k", scores * score.divisor, asking.labels)
        scale = f"1 / {formulas.divisor(score, plan.query_head)}"
        story.tell("scale", scale, torch.tensor(1 / score.divisor))
    formula = formulas.score(score, plan.query_head)
    story.tell("scores", f"e = {formula}", scores, asking.labels, formulas.score_note(score))
    weighed = f"α = {formulas.weights(attention)}"
    story.tell("weights", weighed, look.weights[0, head, 0], asking.labels)
    if plan.heads > 1:
        every = look.weights[0, :, 0].transpose(0, 1)  # (S, H)
        story.tell("weights of all heads", "α of each head", every, asking.labels)
    read = formulas.value(attention, asking.source, head)
    story.tell("values", f"v = {read}", look.values[0, head], asking.labels)
    alone = plan.heads == 1 and isinstance(attention.merge, nn.Identity)
    if not alone:
        letter = formulas.at("r", head + 1) if plan.heads > 1 else "r"
        story.tell("read by the head", f"{letter} = Σ α v", look.read[0, head, 0])
    together = "Σ α v" if alone else formulas.context(attention)
    story.tell("context", f"{scene.now('a')} = {together}", look.context[0, 0], note=note)


def tell_answer(decoder: DecoderModule, features: Tensor, formula: str, scene: Scene) -> Tensor:
    """What the readout makes of features (1, F): (V,) probabilities"""
    story, readout = scene.story, decoder.readout
    story.begin("what it says")
    # Of a label's features, the last number only says whether the labels have come to their end.
    heard = features[:, :-1] if isinstance(readout, LabelReadout) else features
    story.tell("features", f"{scene.now('f')} = {formula}", heard[0])
    seen = scene.now("f")
    if not isinstance(readout.bend, nn.Identity):
        story.tell("hidden layer", f"u = tanh(W {seen} + b)", readout.bend(heard)[0])
        seen = "u"
    logits = readout(features)  # (1, V)
    copyable = decoder.copyable(scene.memory)
    story.tell("logits", f"z = W {seen} + b", logits[0], note=_impossible(logits))
    if decoder.copying is None or copyable is None:
        probabilities = logits[0].softmax(dim=-1)
        story.tell("probabilities", "p = softmax(z)", probabilities)
        return probabilities
    tell_copying(decoder.copying, features.unsqueeze(0), copyable, scene)
    probabilities = decoder.next_logits(features, copyable)[0].softmax(dim=-1)
    mixed = "p(y) = g · softmax(z)(y) + (1 - g) · Σ α over the places where y stands"
    story.tell("probabilities", mixed, probabilities)
    return probabilities


def _impossible(logits: Tensor) -> str:
    """Tokens that can never come here."""
    never = int(logits.isinf().sum())
    return f"{never} of them -∞: these cannot come here" if never else ""


def tell_copying(copying: Copying, features: Tensor, source: Copyable, scene: Scene) -> None:
    """The pointer and the gate; features (1, 1, F)"""
    story, labels = scene.story, scene.words.source
    queries = copying.to_query(features)  # (1, 1, D)
    scores = queries @ source.keys.transpose(1, 2) * copying.scale  # (1, 1, S)
    shares = copying.shares(features, source)
    story.begin("what it copies")
    seen = scene.now("f")
    story.tell("pointer query", f"q = Wq {seen} + bq", queries[0, 0])
    story.tell("pointer keys", "k = Wk h", source.keys[0], labels)
    scaled = f"e = q · k / √{queries.shape[-1]}"
    story.tell("pointer scores", scaled, scores[0, 0], labels)
    story.tell("pointer", "α = softmax(e)", shares.pointer[0, 0], labels)
    gate = f"g = σ(W [{seen}; Σ α k] + b)"
    note = "the share that is said in its own words; 1 - g is copied"
    story.tell("gate", gate, shares.speaks[0, 0, 0].exp(), note=note)
