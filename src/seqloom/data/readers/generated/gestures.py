"""Generates labelled movements of a hand: sequences of noisy velocities."""

import math
import random
from collections.abc import Iterator

from seqloom.config.schema.corpora import GesturesConfig
from seqloom.data.example import Example
from seqloom.data.modalities.frames import format_frames
from seqloom.data.readers.generated.sampling import gaussian, generate
from seqloom.data.readers.reader import GeneratedReader

GESTURES = ("left-circle", "right-circle", "wave", "rest")
MIN_SEGMENT, MAX_SEGMENT = 6, 14
"""Minimum and maximum number of frames of one gesture in a sequence of several gestures. The last
gesture of a sequence can be shorter."""
TURN = 0.45
"""Change of direction per frame of a circle, in radians. A full circle takes 14 frames."""
WAVE_FRAMES = 4
"""Number of frames after which a waving hand reverses."""


class GesturesReader(GeneratedReader[GesturesConfig]):
    """Generates hand movements as sequences of frames. Depending on the setting `labels`, each frame
    has a label, or each sequence has one."""

    def read(self) -> Iterator[Example]:
        seed, count = self.corpus.seed, self.corpus.examples
        pairs = generate("gestures", seed, count, self.split, self._draw, "lower examples")
        for number, (source, target) in enumerate(pairs, start=1):
            yield Example(source, target, (target,), f"gestures:{number}")

    def _draw(self, generator: random.Random) -> tuple[str, tuple[str, str]]:
        corpus = self.corpus
        length = generator.randint(corpus.min_frames, corpus.max_frames)
        frames: list[tuple[float, float]] = []
        labels: list[str] = []
        while len(frames) < length:
            gesture = generator.choice([name for name in GESTURES if name not in labels[-1:]])
            segment = generator.randint(MIN_SEGMENT, MAX_SEGMENT)
            count = length if corpus.labels == "sequence" else min(segment, length - len(frames))
            frames += _velocities(generator, gesture, count, corpus.noise)
            labels += [gesture] * count
        text = format_frames(frames)
        return text, (text, labels[0] if corpus.labels == "sequence" else " ".join(labels))


def _velocities(
    generator: random.Random, gesture: str, count: int, noise: float
) -> Iterator[tuple[float, float]]:
    """Yield the velocity of the hand in each frame of a gesture.

    A hand that draws a circle starts in a random direction and turns by a fixed angle per frame, to
    the left or to the right. A waving hand moves along a line in a random direction and reverses
    every WAVE_FRAMES frames. A resting hand does not move. A single frame does not show whether it
    belongs to a left circle, a right circle or a wave.
    """
    direction = generator.uniform(0, 2 * math.pi)
    speed = generator.uniform(0.8, 1.2)
    for frame in range(count):
        angle, current = direction, speed
        if gesture == "left-circle":
            angle += frame * TURN
        elif gesture == "right-circle":
            angle -= frame * TURN
        elif gesture == "wave":
            angle += math.pi * (frame // WAVE_FRAMES % 2)
        else:
            current = 0.0
        yield (
            current * math.cos(angle) + noise * gaussian(generator),
            current * math.sin(angle) + noise * gaussian(generator),
        )
