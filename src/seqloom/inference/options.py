"""The options of a prediction: the only place where an option is named and described.

`PredictionOptions` has one field for each option. The metadata of a field says where the option is
available, so that other packages derive their interface from it:

- Python:       the keyword arguments of `Run.translate` and of the other methods (`OptionValues`)
- command line: the options of the commands (`cli/parameters/prediction_options.py`)
- HTTP:         the fields of the requests (`serving/api/schemas/option_fields.py`)
- web page:     the controls, from the list of options in GET /api/runs

This module imports neither torch nor pydantic, because the command line reads it at every start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, get_args

from seqloom.text.glossary import Glossary

if TYPE_CHECKING:
    from seqloom.config.schema.decoding import DecodingConfig

Probabilities = Literal["none", "score", "tokens"]
"""The probabilities that a caller needs: none; the score of each output; or the score of each
output and the log-probabilities of its tokens."""


@dataclass(frozen=True)
class Slider:
    """A control of the web page that sets a number.

    at_most: largest value. None: the limit of the server
    default: value of the page if neither the link nor the run sets one
    unit:    what follows the number, for example "tokens"
    zero:    text that replaces the number 0
    percent: True to show the number as a percentage
    """

    label: str
    at_least: float
    at_most: float | None
    step: float
    default: float
    unit: str = ""
    zero: str = ""
    percent: bool = False


@dataclass(frozen=True)
class Switch:
    """A control of the web page that turns an option on or off."""

    label: str


@dataclass(frozen=True)
class Option:
    """Describes an option: what it does, and where it is available.

    help:     description for users, in all interfaces
    python:   True if the methods of `Run` accept it as a keyword argument
    commands: commands that have the option, for example "translate-file"
    requests: HTTP requests that have a field for it: "translate", "complete", "caption" and
              "inspect", which stands for all requests of the inspection routes
    names:    its name in some commands and requests, where it differs from the name of the field
    defaults: its default in some requests, where it differs from that of the field
    advanced: True if it is rarely needed. The help of a command lists it in the panel "Advanced"
    metavar:  placeholder for the value in the help of a command
    at_least, above, at_most: bounds of a number
    limit:    limit of the server for the largest value in a request (a field of `Limits`). It
              replaces `at_most`
    setting:  setting of [decoding] that the option replaces
    control:  control of the web page for this option
    views:    views of the web page that have the control
    """

    help: str
    python: bool = True
    commands: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    advanced: bool = False
    metavar: str = ""
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    limit: str = ""
    setting: str = ""
    control: Slider | Switch | None = None
    views: tuple[str, ...] = ()


@dataclass(frozen=True)
class PredictionOptions:
    """Options of a prediction. If an option is None, the setting of the run is used."""

    n_best: Annotated[
        int,
        Option(
            "Number of outputs per text, best first.",
            python=False,
            commands=("translate", "translate-files", "complete", "inspect"),
            requests=("translate", "complete", "caption"),
            names={"complete": "samples"},
            metavar="N",
            at_least=1,
            at_most=1000,
            limit="n_best",
        ),
    ] = 1
    beam: Annotated[
        int | None,
        Option(
            "Beam width. Default: the run's setting.",
            commands=(
                *("translate", "translate-files", "translate-file", "augment"),
                *("caption", "search", "inspect", "explain", "compare", "evaluate"),
                *("example search", "draw search"),
            ),
            requests=("translate", "caption", "inspect"),
            metavar="N",
            at_least=1,
            at_most=1000,
            limit="beam",
            control=Slider("Beam width", 1, None, 1, 5),
            views=("translate", "caption", "search"),
        ),
    ] = None
    decoding: Annotated[
        "DecodingConfig | None",
        Option("A search config, such as BeamConfig(width=5). Default: the search of the recipe."),
    ] = None
    length_penalty: Annotated[
        float | None,
        Option(
            "Exponent of the length penalty: score = log p / length^exponent. Default: the run's "
            "setting.",
            requests=("translate", "inspect"),
            at_least=0,
            at_most=10,
            setting="length_penalty",
        ),
    ] = None
    length_counts_end: Annotated[
        bool | None,
        Option(
            "Count END in the length of an output. Default: the run's setting.",
            requests=("translate", "inspect"),
            setting="length_counts_end",
        ),
    ] = None
    temperature: Annotated[
        float | None,
        Option(
            "Values below 1 favour likely tokens, values above 1 give more variety. 0 selects the "
            "likeliest token at every step.",
            commands=("complete",),
            requests=("complete",),
            defaults={"complete": 1.0},
            metavar="T",
            at_least=0,
            at_most=100,
            setting="temperature",
            control=Slider("Temperature", 0, 1.5, 0.1, 0.8),
            views=("complete",),
        ),
    ] = None
    top_k: Annotated[
        int | None,
        Option(
            "Sample from the k likeliest tokens. 0: from all tokens.",
            commands=("complete",),
            requests=("complete",),
            defaults={"complete": 0},
            metavar="K",
            at_least=0,
            setting="top_k",
            control=Slider("Top-k", 0, 50, 1, 0, unit="tokens", zero="all tokens"),
            views=("complete",),
        ),
    ] = None
    top_p: Annotated[
        float | None,
        Option(
            "Sample from the smallest set of tokens whose total probability is at least p.",
            commands=("complete",),
            requests=("complete",),
            defaults={"complete": 1.0},
            metavar="P",
            above=0,
            at_most=1,
            setting="top_p",
            control=Slider("Top-p", 0.1, 1, 0.05, 1, percent=True),
            views=("complete",),
        ),
    ] = None
    seed: Annotated[
        int | None,
        Option(
            "Seed of the sampling. Default: a new one each time.",
            commands=("complete",),
            requests=("complete",),
            metavar="N",
            at_least=0,
            at_most=2**53 - 1,
            setting="seed",
        ),
    ] = None
    max_length: Annotated[
        int | None,
        Option(
            "Maximum number of tokens of an output, including the prompt. Default: the run's setting.",
            requests=("complete",),
            at_least=1,
            limit="output_tokens",
            setting="max_length",
            control=Slider("Maximum length", 10, None, 1, 60, unit="tokens"),
            views=("complete",),
        ),
    ] = None
    stop_at_newline: Annotated[
        bool | None,
        Option(
            "Stop at the end of the line. Default: the run's setting.",
            requests=("complete",),
            defaults={"complete": False},
            setting="stop_at_newline",
        ),
    ] = None
    attention: Annotated[
        bool | None,
        Option(
            "True: the search stores attention weights, so only the engine torch can serve the "
            "request. False: the outputs have none. Default: the weights of an output are computed "
            "when they are first read.",
            requests=("translate",),
            defaults={"translate": False},
        ),
    ] = None
    heads: Annotated[
        bool,
        Option(
            "Return the attention weights of each layer and head.",
            requests=("translate",),
        ),
    ] = False
    prefixes: Annotated[
        Sequence[str] | None,
        Option(
            "One prefix per text, with which its output must start. An empty prefix has no effect. A "
            "text with a prefix is not split, and `pass_through` does not apply to it.",
        ),
    ] = None
    to: Annotated[
        str | Sequence[str] | None,
        Option(
            "Target language, for multilingual runs.",
            commands=(
                *("translate", "translate-files", "translate-file", "augment"),
                *("search", "inspect"),
            ),
            metavar="LANGUAGE",
        ),
    ] = None
    split: Annotated[
        bool | None,
        Option(
            "Split texts into sentences and join their translations. Default: split if the run was "
            "trained on sentences.",
            commands=("translate", "translate-files"),
            advanced=True,
            requests=("translate",),
        ),
    ] = None
    pass_through: Annotated[
        bool | None,
        Option(
            "Copy URLs, e-mail addresses, placeholders, tags, emoji and unknown characters to the "
            "output. Default: copy if the run was trained on sentences.",
            commands=("translate", "translate-files"),
            advanced=True,
            requests=("translate",),
        ),
    ] = None
    glossary: Annotated[
        Glossary | None,
        Option(
            "Source phrases and the target phrases that the output must contain for them. If this is "
            "not possible, the output has a warning.",
            commands=("translate", "translate-files", "translate-file"),
            advanced=True,
            requests=("translate",),
            limit="glossary",
        ),
    ] = None
    first: Annotated[
        int,
        Option(
            "Number of texts in earlier calls, if a long list is passed in several calls. Random "
            "samples and line numbers in errors are then the same as in a single call.",
            python=False,
        ),
    ] = 0
    probabilities: Annotated[
        Probabilities,
        Option(
            '"tokens": the score of each output and the log-probability of each token. "score": only '
            'the scores. "none": neither. torch always returns all; CTranslate2 is faster if it '
            'returns less. With "none", the scores of its greedy outputs are NaN.',
            python=False,
        ),
    ] = "tokens"

    @property
    def stores_attention(self) -> bool:
        """True if the search must store attention weights, and not only compute them later."""
        return self.attention is True or (self.attention is None and self.heads)

    def of_search(self) -> "PredictionOptions":
        """Return only the options that a search of prepared inputs uses.

        Requests with equal options of the search can share a batch.
        """
        return PredictionOptions(
            n_best=self.n_best,
            attention=self.attention,
            heads=self.heads,
            probabilities=self.probabilities,
        )

    def settings(self) -> dict[str, Any]:
        """Return the settings of [decoding] that these options replace, with their new values."""
        return {
            option.setting: value
            for name, option in OPTIONS.items()
            if option.setting and (value := getattr(self, name)) is not None
        }


class OptionValues(TypedDict, total=False):
    """The options that the methods of `Run` accept as keyword arguments, for type checkers."""

    beam: int | None
    decoding: "DecodingConfig | None"
    length_penalty: float | None
    length_counts_end: bool | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None
    max_length: int | None
    stop_at_newline: bool | None
    attention: bool | None
    heads: bool
    prefixes: Sequence[str] | None
    to: str | Sequence[str] | None
    split: bool | None
    pass_through: bool | None
    glossary: Mapping[str, str] | Glossary | None


OPTION_TYPES: dict[str, Any] = {}
"""The type of each option, by the name of its field."""
OPTIONS: dict[str, Option] = {}
"""The description of each option, by the name of its field."""
for _field in fields(PredictionOptions):
    OPTION_TYPES[_field.name], OPTIONS[_field.name] = get_args(_field.type)

PredictionOptions.__doc__ = "\n".join(
    [
        PredictionOptions.__doc__ or "",
        "",
        *(f"    {name}: {option.help}" for name, option in OPTIONS.items()),
    ]
)


def change_options(options: PredictionOptions, changes: OptionValues) -> PredictionOptions:
    """Return the options, changed by keyword arguments. A dict is accepted as glossary."""
    values: dict[str, Any] = {**changes}
    if isinstance(values.get("glossary"), Mapping):
        values["glossary"] = Glossary.of(values["glossary"])
    return replace(options, **values) if values else options


DEFAULT_OPTIONS = PredictionOptions()
TEXT_ONLY = PredictionOptions(attention=False, probabilities="none")
UNSPLIT = PredictionOptions(attention=True, split=False, pass_through=False)
"""Options with which the model reads each text as a whole: it is not split, and no parts of it are
copied."""
