"""Requests and responses of the OpenAI API. The field names are those of OpenAI."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from seqloom.serving.api.schemas.option_fields import Text
from seqloom.serving.api.schemas.predictions import JsonNumber

FinishReason = Literal["stop", "length"]


class StreamOptions(BaseModel):
    """Options of a stream."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    include_usage: bool = Field(
        False, description="Send the numbers of tokens before the end of the stream."
    )
    include_obfuscation: bool = Field(
        False, description="Accepted for compatibility. This server sends no padding."
    )


class OpenAiCompletionRequest(BaseModel):
    """A completion request. Options that change the output but are not supported are rejected."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"model": "novel", "prompt": "Once upon a time", "max_tokens": 20}]
        },
    )

    model: Text = Field(description="Name of a language-model run.", examples=["novel"])
    prompt: Text | list[Text] = Field(
        "", description="Text to continue, or a list of texts.", examples=["Once upon a time"]
    )
    max_tokens: int | None = Field(
        None, ge=1, description="Maximum number of new tokens. Default: 16."
    )
    temperature: float | None = Field(
        None,
        ge=0,
        le=2,
        description="Values below 1 sharpen the distribution; 0 selects the likeliest token. "
        "Default: 1.",
    )
    top_p: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Sample from the smallest set of tokens whose total probability is at least "
        "this value. Default: 1.",
    )
    n: int | None = Field(None, ge=1, description="Number of outputs per prompt. Default: 1.")
    seed: int | None = Field(
        None, ge=0, lt=2**53, description="Seed of the sampling. Default: a random seed."
    )
    stop: Text | list[Text] | None = Field(
        None,
        description="Up to four texts. An output ends before the first of them.",
    )
    logprobs: int | None = Field(
        None,
        ge=0,
        le=5,
        description="Return the log-probability of each token, and this number of likeliest tokens "
        "at each position.",
    )
    echo: bool | None = Field(None, description="Begin each output with its prompt.")
    stream: bool | None = Field(None, description="Send the tokens as server-sent events.")
    stream_options: StreamOptions | None = Field(None, description="Options of the stream.")
    user: Text | None = Field(None, description="Accepted for compatibility. Has no effect.")
    best_of: int | None = Field(None, description="Not supported, unless it equals n.")
    suffix: Text | None = Field(None, description="Not supported, unless it is empty.")
    frequency_penalty: float | None = Field(None, description="Not supported, unless it is 0.")
    presence_penalty: float | None = Field(None, description="Not supported, unless it is 0.")
    logit_bias: dict[str, float] | None = Field(
        None, description="Not supported, unless it is empty."
    )

    @property
    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else list(self.prompt)

    @property
    def stops(self) -> list[str]:
        return [self.stop] if isinstance(self.stop, str) else list(self.stop or ())


class TokenLogprobs(BaseModel):
    """The tokens of an output. All lists have one item per token."""

    tokens: list[str] = Field(description="Text of each token.")
    token_logprobs: list[JsonNumber] = Field(description="Log-probability of each token.")
    top_logprobs: list[dict[str, JsonNumber]] | None = Field(
        description="The likeliest tokens and their log-probabilities; null for logprobs = 0."
    )
    text_offset: list[int] = Field(
        description="Position of each token in the prompt and the output, in characters."
    )


class CompletionChoice(BaseModel):
    """One output."""

    index: int = Field(description="Number of the output. The outputs of a prompt are consecutive.")
    text: str = Field(description="The output, or the next part of it in a stream.")
    logprobs: TokenLogprobs | None = Field(None, description="Null unless requested.")
    finish_reason: FinishReason | None = Field(
        description="stop: the model ended the text, or a stop text was found. length: the output "
        "has max_tokens tokens. Null for a part of a stream that is not the last one."
    )


class TokenUsage(BaseModel):
    """Numbers of tokens in the prompts and outputs of a request."""

    prompt_tokens: int = Field(description="Number of tokens of all prompts.")
    completion_tokens: int = Field(description="Number of tokens of all outputs.")
    total_tokens: int = Field(description="Sum of both.")


class OpenAiCompletion(BaseModel):
    """Outputs of a completion request, or the next part of them in a stream."""

    id: str = Field(description="Random identifier of the response.", examples=["cmpl-4f1c2a"])
    object: Literal["text_completion"] = Field(
        "text_completion", description="Always text_completion."
    )
    created: int = Field(description="Time of the response in Unix seconds.")
    model: str = Field(description="Name of the run.")
    choices: list[CompletionChoice] = Field(description="The outputs.")
    usage: TokenUsage | None = Field(None, description="Numbers of tokens.")


class OpenAiModel(BaseModel):
    """A language-model run."""

    id: str = Field(description="Name of the run.")
    object: Literal["model"] = Field("model", description="Always model.")
    created: int = Field(description="Time at which the run folder was written, in Unix seconds.")
    owned_by: str = Field("seqloom", description="Always seqloom.")


class OpenAiModels(BaseModel):
    """All language-model runs."""

    object: Literal["list"] = Field("list", description="Always list.")
    data: list[OpenAiModel] = Field(description="All language-model runs.")
