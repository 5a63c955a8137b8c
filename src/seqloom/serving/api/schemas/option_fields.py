"""Fields of requests, and controls of the web page, that are derived from `PredictionOptions`.

    @with_option_fields("translate")
    class TranslateRequest(OptionsRequest): ...

The request has a field for each option of `inference/options.py` whose `requests` contain
"translate". `OptionsRequest.options` returns their values as a `PredictionOptions`.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, TypeVar, cast, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from seqloom.inference.options import OPTION_TYPES, OPTIONS, PredictionOptions, Slider
from seqloom.text.glossary import Glossary


def _check_surrogates(text: str) -> str:
    """Return the text unchanged. Raises ValueError if it contains half of a surrogate pair.

    JSON can contain one half without the other, but such a text cannot be encoded as UTF-8.
    """
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("contains half of a surrogate pair; send valid Unicode")
    return text


Text = Annotated[str, AfterValidator(_check_surrogates)]


class StrictRequest(BaseModel):
    """Base class of request bodies. Rejects unknown fields and values of the wrong type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RunRequest(StrictRequest):
    """Base class of requests that choose a run."""

    run: Text | None = Field(
        None, description="Name of the run. Default: the only run that supports the request."
    )


class OptionsRequest(RunRequest):
    """Base class of requests with options of a prediction.

    option_names: for each option, the name of its field in this request
    """

    option_names: ClassVar[dict[str, str]] = {}

    @property
    def options(self) -> PredictionOptions:
        """The options of the request. Options that it cannot contain have their defaults."""
        values = {name: getattr(self, field) for name, field in self.option_names.items()}
        if values.get("glossary") is not None:
            values["glossary"] = Glossary.of(values["glossary"])
        return PredictionOptions(**values)


RequestType = TypeVar("RequestType", bound=type[OptionsRequest])


def with_option_fields(request: str) -> Callable[[RequestType], RequestType]:
    """Decorate a request class: add a field for each option that this request has."""

    def decorate(model: RequestType) -> RequestType:
        options: type[OptionsRequest] = model
        names = {
            name: option.names.get(request, name)
            for name, option in OPTIONS.items()
            if request in option.requests
        }
        fields: dict[str, Any] = {
            names[name]: option_field(request, name)
            for name in names
            if names[name] not in options.model_fields
        }
        derived: Any = create_model(
            options.__name__, __base__=options, __module__=options.__module__, **fields
        )
        derived.__doc__, derived.option_names = options.__doc__, names
        return cast("RequestType", derived)

    return decorate


def option_field(request: str, name: str) -> tuple[Any, Any]:
    """Return the type and the definition of the field for an option, as pydantic expects them."""
    option, kind = OPTIONS[name], OPTION_TYPES[name]
    default = option.defaults.get(request, getattr(PredictionOptions, name))
    if Glossary in get_args(kind):
        kind = dict[Text, Text] | None
    elif default is not None and get_args(kind):
        [kind] = set(get_args(kind)) - {type(None)}
    return kind, Field(
        default,
        ge=option.at_least,
        gt=option.above,
        le=None if option.limit else option.at_most,
        description=option.help,
    )


class Control(BaseModel):
    """A control of the web page for an option of predictions."""

    view: str = Field(description="View of the page that has the control.")
    field: str = Field(description="Field of the request that the control sets.")
    kind: str = Field(description="slider or switch.")
    label: str = Field(description="Label of the control.")
    help: str = Field(description="What the option does.")
    limit: str = Field(description="Limit of the server for the largest value; empty if none.")
    at_least: float | None = Field(None, description="Smallest value of a slider.")
    at_most: float | None = Field(None, description="Largest value of a slider; null: the limit.")
    step: float | None = Field(None, description="Distance between two values of a slider.")
    default: float | None = Field(None, description="Value of a slider if nothing sets one.")
    unit: str = Field("", description="Unit that is shown after the number.")
    zero: str = Field("", description="Text that is shown instead of the number 0.")
    percent: bool = Field(False, description="True if the number is shown as a percentage.")


def controls() -> list[Control]:
    """Return the controls of all views of the web page."""
    return [
        Control(
            view=view,
            field=option.names.get(view, name),
            kind="slider" if isinstance(option.control, Slider) else "switch",
            help=option.help,
            limit=option.limit,
            **asdict(option.control),
        )
        for name, option in OPTIONS.items()
        if option.control is not None
        for view in option.views
    ]
