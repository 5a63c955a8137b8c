"""Every interface derives its options from `PredictionOptions`."""

import inspect
from typing import Any, get_args, get_type_hints

import pytest
from typer.main import get_command

from seqloom.cli.main import app
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.inference.options import (
    OPTION_TYPES,
    OPTIONS,
    OptionValues,
    PredictionOptions,
    change_options,
)
from seqloom.inference.run import Run
from seqloom.serving.api.captions import caption
from seqloom.serving.api.schemas.inspection import InspectionRequest
from seqloom.serving.api.schemas.option_fields import OptionsRequest, controls
from seqloom.serving.api.schemas.predictions import CompleteRequest, TranslateRequest
from seqloom.serving.server.limits import Limits

REQUESTS: dict[str, type[OptionsRequest]] = {
    "translate": TranslateRequest,
    "complete": CompleteRequest,
    "inspect": InspectionRequest,
}


def test_keyword_arguments_of_python_have_the_names_and_types_of_the_options() -> None:
    names = {"DecodingConfig": DecodingConfig}
    hints = get_type_hints(OptionValues, localns=names)
    for name, option in OPTIONS.items():
        if not option.python:
            assert name not in hints
            continue
        field = get_type_hints(PredictionOptions, localns=names)[name]
        assert set(get_args(field)) <= set(get_args(hints[name])) or field == hints[name], name


def test_methods_of_a_run_accept_all_options() -> None:
    for method in (Run.translate, Run.translate_n_best, Run.predict, Run.caption, Run.complete):
        signature = inspect.signature(method)
        assert "OptionValues" in str(signature.parameters["changes"].annotation)
        assert signature.parameters["options"].default == PredictionOptions()


def test_a_dict_is_accepted_as_glossary() -> None:
    options = change_options(PredictionOptions(beam=3), {"glossary": {"a": "b"}, "split": False})
    assert options.glossary is not None
    assert options.glossary.pairs == (("a", "b"),)
    assert (options.beam, options.split) == (3, False)


@pytest.mark.parametrize(
    "name", sorted({each for one in OPTIONS.values() for each in one.commands})
)
def test_commands_have_their_options(name: str) -> None:
    command: Any = get_command(app)
    if name not in command.commands:
        pytest.skip("the command is not registered")
    parameters = {each.name: each for each in command.commands[name].params}
    for field, option in OPTIONS.items():
        if name in option.commands:
            parameter = parameters[option.names.get(name, field)]
            assert option.help in parameter.help
            assert parameter.default == getattr(PredictionOptions, field)


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_have_their_options(name: str) -> None:
    request = REQUESTS[name]
    for field, option in OPTIONS.items():
        known = request.model_fields.get(option.names.get(name, field))
        assert (known is not None) == (name in option.requests), field
        assert known is None or known.description == option.help


def test_values_of_a_request_become_options() -> None:
    request = TranslateRequest.model_validate(
        {"texts": ["a"], "beam": 3, "split": False, "glossary": {"a": "b"}, "heads": True}
    )
    options = request.options
    assert (options.beam, options.split, options.heads, options.attention) == (
        3,
        False,
        True,
        False,
    )
    assert options.glossary is not None
    assert request.search_options().stores_attention
    completion = CompleteRequest.model_validate({"samples": 2, "temperature": 0})
    assert (completion.options.n_best, completion.options.temperature) == (2, 0)
    assert completion.options.top_p == 1.0


def test_captions_have_their_options() -> None:
    parameters = inspect.signature(caption).parameters
    for field, option in OPTIONS.items():
        assert (field in parameters) == ("caption" in option.requests), field


def test_limits_of_options_are_limits_of_the_server() -> None:
    for option in OPTIONS.values():
        assert not option.limit or isinstance(getattr(Limits(), option.limit), int)


def test_every_view_of_the_page_gets_its_controls() -> None:
    described = {(each.view, each.field): each for each in controls()}
    assert described["translate", "beam"].limit == "beam"
    assert described["complete", "top_p"].percent
    assert len(described) == sum(len(option.views) for option in OPTIONS.values())
    assert set(OPTION_TYPES) == set(OPTIONS)
