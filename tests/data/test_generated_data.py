"""Generated scenes, gestures, robot paths and questions: correct, reproducible, disjoint splits."""

import hashlib
import math
import random
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from pydantic import ValidationError

from seqloom.config.schema.corpora import (
    BundledConfig,
    GesturesConfig,
    RobotConfig,
    ScenesConfig,
    SyntheticConfig,
)
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example, Split
from seqloom.data.modalities.frames import parse_frames
from seqloom.data.modalities.images import read_pixels
from seqloom.data.readers.bundled import read_bundled
from seqloom.data.readers.generated.gestures import GESTURES
from seqloom.data.readers.generated.robot import AXLE, robot_paths
from seqloom.data.readers.generated.sampling import gaussian
from seqloom.data.readers.generated.scenes import (
    BACKGROUND,
    COLOURS,
    SceneShape,
    describe,
    draw_scene,
    parse_scene,
)
from seqloom.data.readers.splits import read_corpus

SPLITS: tuple[Split, ...] = ("train", "dev", "test")


def scenes(split: Split, seed: int = 0, examples: int = 80) -> list[Example]:
    return list(read_corpus(ScenesConfig(examples=examples, seed=seed), ".", split, "data.train"))


def gestures(split: Split, **settings: object) -> list[Example]:
    config = GesturesConfig.model_validate({"examples": 60, **settings})
    return list(read_corpus(config, ".", split, "data.train"))


class TestScenes:
    def test_splits_share_no_caption_whatever_their_seeds(self) -> None:
        captions = [
            {text for example in scenes(split, seed) for text in example.references}
            for seed, split in enumerate(SPLITS)
        ]
        for first, second in combinations(captions, 2):
            assert not first & second

    def test_captions_describe_the_drawn_pixels(self) -> None:
        """The mean position of the pixels of each colour agrees with the relation."""
        for example in scenes("train"):
            pixels = read_pixels(example.source, 48)
            first, second = parse_scene(example.source)
            if first.colour == second.colour:
                continue
            centres = []
            for shape in (first, second):
                mask = (pixels == np.array(COLOURS[shape.colour])[:, None, None]).all(0)
                assert mask.sum() > 10
                centres.append(np.argwhere(mask).mean(0))
            down, across = centres[0] - centres[1]
            relation = example.target.split(first.shape)[1].split(" a ")[0].strip()
            if relation in ("left of", "right of"):
                assert (across < 0) == (relation == "left of")
            else:
                assert (down < 0) == (relation == "above")

    def test_both_orders_of_a_caption_are_references(self) -> None:
        upper, lower = (
            SceneShape("red", "circle", 50, 20, 12),
            SceneShape("blue", "square", 50, 80, 12),
        )
        assert describe(upper, lower) == "a red circle above a blue square"
        assert describe(lower, upper) == "a blue square below a red circle"
        assert all(len(set(example.references)) == 2 for example in scenes("dev"))

    def test_shapes_cover_the_right_area(self) -> None:
        """The share of the image that a shape of radius 40 % covers, from its formula."""
        areas = {"circle": math.pi * 0.16, "square": 0.64, "triangle": 0.32}
        for shape, area in areas.items():
            pixels = draw_scene(f"scene:black {shape} 50 50 40", 200)
            assert (pixels[0] != BACKGROUND[0]).mean() == pytest.approx(area, rel=0.02)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("scene:pink circle 1 2 3", "'pink circle 1 2 3' has no known colour and shape"),
            ("scene:red circle 1 2", "'red circle 1 2' does not end in three whole numbers"),
            ("scene:red circle 1 2 3;red", "'red' has no known colour and shape"),
            ("scene:", "has no known colour and shape"),
            ("scene:red circle 1 2 x", "does not end in three whole numbers"),
        ],
    )
    def test_a_wrong_scene_is_an_error(self, name: str, message: str) -> None:
        with pytest.raises(DataError, match=message):
            read_pixels(name, 32)


class TestGestures:
    def test_every_frame_or_every_sequence_has_a_label(self) -> None:
        for example in gestures("train"):
            frames = parse_frames(example.source)
            assert len(example.target.split()) == len(frames)
            assert 20 <= len(frames) <= 40
        whole = gestures("train", labels="sequence")
        assert {example.target for example in whole} == set(GESTURES)

    def test_the_direction_of_a_circle_needs_two_frames(self) -> None:
        """Without noise, consecutive velocities turn left or right, and single ones say nothing."""
        turns: dict[str, list[float]] = {}
        for example in gestures("train", labels="sequence", noise=0.0):
            (x, y), (next_x, next_y) = parse_frames(example.source)[:2]
            turns.setdefault(example.target, []).append(x * next_y - y * next_x)
        assert all(turn > 0 for turn in turns["left-circle"])
        assert all(turn < 0 for turn in turns["right-circle"])
        np.testing.assert_allclose(turns["wave"], 0, atol=1e-5)
        np.testing.assert_allclose(turns["rest"], 0, atol=1e-5)

    def test_splits_share_no_sequence(self) -> None:
        sources = [{example.source for example in gestures(split)} for split in SPLITS]
        for first, second in combinations(sources, 2):
            assert not first & second

    def test_frame_limits_in_the_wrong_order_are_an_error(self) -> None:
        with pytest.raises(ValidationError, match="min_frames 9 is above max_frames 5"):
            GesturesConfig(examples=1, min_frames=9, max_frames=5)


class TestRobot:
    def test_wheel_speeds_determine_the_path(self) -> None:
        """Differential drive: distance and turn of each step follow from the two speeds."""
        for path in robot_paths(RobotConfig(examples=20, noise=0.0), 12, "train"):
            x, y, left, right = path.T
            steps = np.stack([np.diff(x), np.diff(y)], axis=1)
            speeds = (left + right)[1:] / 2
            np.testing.assert_allclose(np.hypot(*steps.T), abs(speeds), atol=1e-9)
            direction = np.arctan2(*(steps * np.sign(speeds)[:, None]).T[::-1])
            turn = (right - left)[2:] / AXLE
            difference = np.angle(np.exp(1j * (np.diff(direction) - turn)))
            np.testing.assert_allclose(difference, 0, atol=1e-6)

    def test_context_can_be_switched_off(self) -> None:
        from seqloom.config.schema.data import DataConfig
        from seqloom.data.modalities.series import read_windows

        data = DataConfig(train=(RobotConfig(examples=3),))
        task = ForecastConfig(observe=4, predict=5)
        with_context, *_ = read_windows(data, task, "train")
        without, *_ = read_windows(data, task.model_copy(update={"use_context": False}), "train")
        assert with_context.observed.shape == (4, 4)
        assert with_context.context.shape == (5, 2)
        assert without.observed.shape == (4, 2)
        assert without.context.shape == (5, 0)
        np.testing.assert_array_equal(with_context.future, without.future)


class TestQuestions:
    CONFIG = SyntheticConfig(task="questions", examples=300, min_length=2, max_length=4)

    def test_answers_are_true(self) -> None:
        for example in read_corpus(self.CONFIG, ".", "train", "data.train"):
            *story, question = example.source.replace("?", ".").removesuffix(".").split(". ")
            facts = {name: (count, thing) for name, _, count, thing in map(str.split, story)}
            assert 2 <= len(facts) <= 4
            words = question.split()
            answer = example.target.removesuffix(".").split()
            if words[0] == "How":
                assert answer == [words[4], "has", *facts[words[4]]]
            elif words[0] == "What":
                assert answer == [words[2], "has", facts[words[2]][1]]
            elif words[0] == "Who":
                assert facts[answer[0]] == (words[2], words[3])
                assert sum(fact == (words[2], words[3]) for fact in facts.values()) == 1
            else:
                is_true = facts[words[1]] == (words[3], words[4])
                assert answer[0] == ("Yes," if is_true else "No,")
                assert answer[1:] == [words[1], "has", *facts[words[1]]]

    def test_long_stories_and_parts_of_other_tasks_are_an_error(self) -> None:
        with pytest.raises(
            ValidationError, match="max_length 10 is too large for task = 'questions'"
        ):
            SyntheticConfig(task="questions", examples=1)
        with pytest.raises(ValidationError, match="part = 'any' applies only to task = 'case'"):
            SyntheticConfig(task="copy", examples=1, part="any")


class TestZeroShotPairs:
    @pytest.mark.parametrize("split", ["dev", "test"])
    def test_joined_pairs_have_the_same_english_translation(self, split: Split) -> None:
        german = list(read_bundled(BundledConfig(source="de", target="en"), split))
        french = list(read_bundled(BundledConfig(source="en", target="fr"), split))
        english = {(e.source, e.target) for e in german}
        translations = {(e.target, e.source) for e in french}
        joined = list(read_bundled(BundledConfig(source="de", target="fr"), split))
        assert len(joined) >= 200
        for example in joined:
            shared = {text for de, text in english if de == example.source}
            assert shared & {text for fr, text in translations if fr == example.target}
        reverse = read_bundled(BundledConfig(source="fr", target="de"), split)
        assert {(e.target, e.source) for e in reverse} == {(e.source, e.target) for e in joined}

    @pytest.mark.parametrize("split", ["dev", "test"])
    def test_no_sentence_of_a_joined_pair_is_in_training(self, split: Split) -> None:
        pairs = [BundledConfig(source="de", target="en"), BundledConfig(source="en", target="fr")]
        training = {
            text
            for pair in pairs
            for e in read_bundled(pair, "train")
            for text in (e.source, e.target)
        }
        joined = read_bundled(BundledConfig(source="de", target="fr"), split)
        assert not any({e.source, e.target} & training for e in joined)


def test_gaussian_draws_have_mean_0_and_deviation_1() -> None:
    generator = random.Random("gaussian")
    draws = np.array([gaussian(generator) for _ in range(20_000)])
    assert abs(draws.mean()) < 0.05
    assert abs(draws.std() - 1) < 0.05


def generated_digest() -> str:
    """A digest of some generated examples."""
    texts = [f"{e.source} {e.target}" for e in (*scenes("train", examples=5), *gestures("dev"))]
    texts += [repr(path.tolist()) for path in robot_paths(RobotConfig(examples=3), 6, "test")]
    config = SyntheticConfig(task="questions", examples=5, max_length=3)
    texts += [e.source for e in read_corpus(config, ".", "train", "data.train")]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@pytest.mark.slow
def test_generated_data_are_the_same_in_every_process() -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]; "
        "from test_generated_data import generated_digest; print(generated_digest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program, *sys.path],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            cwd=__file__.rpartition("/")[0],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert digests == {generated_digest()}
