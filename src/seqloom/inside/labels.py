"""A step of a decoder of labels: there is little to tell."""

from torch import Tensor

from seqloom.inside import formulas
from seqloom.inside.scene import Scene, tell_answer
from seqloom.models.labels import LabelDecoder, Reading, read_last, read_mean

_WHOLE: dict[Reading, str] = {
    read_last: "the encoder's last state",
    read_mean: "the mean of the encoder's states",
}
"""What stands for all of a source; other decoders label its positions."""


def tell_label(decoder: LabelDecoder, scene: Scene) -> Tensor:
    """(V,) the probabilities of the next label, and in the story how they come about."""
    vectors, counts = decoder.reading(scene.memory)  # (1, N, D), (1,)
    last = max(int(counts) - 1, 0)
    place = min(scene.step - 1, last)
    ended = scene.step > int(counts)
    read = _WHOLE.get(decoder.reading, formulas.at("h", place + 1))
    scene.story.begin("what goes in")
    note = "all labels are out: only END is possible" if ended else ""
    scene.story.tell("what is labelled", f"v = {read}", vectors[0, place], note=note)
    parts = ["v"]
    if decoder.previous is not None:
        vector = decoder.previous(scene.tokens[:, -1])
        formula = formulas.embedding(decoder.previous, scene.before("y"))
        scene.story.tell("label before", f"w = {formula}", vector[0])
        parts.append("w")
    features = decoder(scene.tokens, scene.memory).features[:, -1]
    return tell_answer(decoder, features, formulas.joined(parts), scene)
