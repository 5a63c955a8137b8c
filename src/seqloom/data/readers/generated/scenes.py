"""Generates images of two coloured shapes, with captions.

The name of a generated image lists its shapes: colour, shape, centre (x, y) and radius in percent
of the image's side. The image is drawn from its name, so there are no files:

    scene:red circle 30 20 18;blue square 60 70 20
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from seqloom.config.schema.corpora import ScenesConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.readers.generated.sampling import generate
from seqloom.data.readers.reader import GeneratedReader

SCENE_PREFIX = "scene:"
COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 160, 60),
    "blue": (40, 70, 220),
    "yellow": (235, 215, 50),
    "purple": (150, 50, 170),
    "black": (20, 20, 20),
}
SHAPES = ("circle", "square", "triangle")
BACKGROUND = (225, 225, 225)
MIN_RADIUS, MAX_RADIUS = 17, 22
MIN_GAP = 3
"""Minimum distance between two shapes, in percent."""
MIN_CLARITY = 14
"""Minimum difference, in percent, between the horizontal and the vertical distance of two shapes.
It makes the relation clear: shapes on a diagonal are not generated."""


@dataclass(frozen=True)
class SceneShape:
    """A shape in an image. Position and radius are in percent of the image's side."""

    colour: str
    shape: str
    x: int
    y: int
    radius: int

    @property
    def description(self) -> str:
        return f"a {self.colour} {self.shape}"


class ScenesReader(GeneratedReader[ScenesConfig]):
    """Generates images with captions. Each image has two references, because a caption can begin
    with either of the two shapes.

    The caption decides the split of an image. So no caption of dev or test occurs in training.
    """

    def read(self) -> Iterator[Example]:
        seed, count = self.corpus.seed, self.corpus.examples
        scenes = generate("scenes", seed, count, self.split, _draw_scene, "lower examples")
        for number, (first, second) in enumerate(scenes, start=1):
            caption, reverse = describe(first, second), describe(second, first)
            name = SCENE_PREFIX + ";".join(
                f"{each.colour} {each.shape} {each.x} {each.y} {each.radius}"
                for each in (first, second)
            )
            yield Example(name, caption, (caption, reverse), f"scenes:{number}")


def describe(first: SceneShape, second: SceneShape) -> str:
    """Return the caption, which says where the first shape is relative to the second shape, such as
    "a red circle above a blue square"."""
    across, down = first.x - second.x, first.y - second.y
    if abs(across) > abs(down):
        relation = "left of" if across < 0 else "right of"
    else:
        relation = "above" if down < 0 else "below"
    return f"{first.description} {relation} {second.description}"


def _draw_scene(generator: random.Random) -> tuple[str, tuple[SceneShape, SceneShape]] | None:
    """Choose two shapes at random. Return (key, shapes), where the key decides the split.

    Return None if the shapes are too close to each other, or if they have the same colour and the
    same form. Also return None if the horizontal and the vertical distance are similar, because
    then neither "above" nor "left of" describes the positions well.
    """
    first, second = _draw_shape(generator), _draw_shape(generator)
    across, down = abs(first.x - second.x), abs(first.y - second.y)
    if max(across, down) < first.radius + second.radius + MIN_GAP:
        return None
    if abs(across - down) < MIN_CLARITY or first.description == second.description:
        return None
    key = min(describe(first, second), describe(second, first))
    return key, (first, second)


def _draw_shape(generator: random.Random) -> SceneShape:
    radius = generator.randint(MIN_RADIUS, MAX_RADIUS)
    return SceneShape(
        generator.choice(list(COLOURS)),
        generator.choice(SHAPES),
        generator.randint(radius, 100 - radius),
        generator.randint(radius, 100 - radius),
        radius,
    )


def draw_scene(name: str, size: int) -> np.ndarray:
    """Draw the shapes that the name of an image lists. Returns (3, size, size) bytes.

    Later shapes cover earlier ones.

    name: for example "scene:red circle 30 20 18;blue square 60 70 20"
    """
    pixels = np.empty((3, size, size), dtype=np.uint8)
    pixels[:] = np.array(BACKGROUND, dtype=np.uint8)[:, None, None]
    centres = (np.arange(size) * 2 + 1) * 50 / size  # centre of each pixel, in percent
    for each in parse_scene(name):
        across, down = centres[None, :] - each.x, centres[:, None] - each.y
        inside = _inside(each, across, down)
        pixels[:, inside] = np.array(COLOURS[each.colour], dtype=np.uint8)[:, None]
    return pixels


def _inside(shape: SceneShape, across: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Return a (size, size) mask that is True at the pixels of the shape.

    across: (1, size) signed horizontal distance of each pixel column from the centre of the shape
    down:   (size, 1) signed vertical distance of each pixel row from the centre of the shape
    """
    radius = shape.radius
    if shape.shape == "circle":
        inside = across**2 + down**2 <= radius**2
    elif shape.shape == "square":
        inside = (abs(across) <= radius) & (abs(down) <= radius)
    else:  # a triangle that points up
        inside = (2 * abs(across) <= down + radius) & (down <= radius)
    return inside


def parse_scene(name: str) -> list[SceneShape]:
    """Return the shapes of a scene. The name of a generated image describes its shapes.

    Raise a DataError that lists all invalid shapes.

    name: for example "scene:red circle 30 20 18;blue square 60 70 20"
    """
    shapes, problems = [], []
    for text in name.removeprefix(SCENE_PREFIX).split(";"):
        colour, shape, *numbers = [*text.split(), "", ""][: max(2, len(text.split()))]
        if colour not in COLOURS or shape not in SHAPES:
            problems.append(f"'{text.strip()}' has no known colour and shape")
        elif len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
            problems.append(f"'{text.strip()}' does not end in three whole numbers x, y and radius")
        else:
            shapes.append(SceneShape(colour, shape, *map(int, numbers)))
    if problems:
        raise DataError(
            f"{name}: {'; '.join(problems)}. Write shapes as 'red circle 30 20 18', separated by "
            f"';'. The colours are {', '.join(COLOURS)}; the shapes are {', '.join(SHAPES)}; the "
            "numbers are percent of the image's side"
        )
    return shapes
