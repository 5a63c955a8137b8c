"""Language model: text without a source."""

from seqloom.config.schema.task import LanguageModelConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.data.example import Example
from seqloom.tasks.build import build_task
from seqloom.text.build import train_tokenizer


def test_input_text_is_the_prefix_of_the_output() -> None:
    tokenizer = train_tokenizer(CharactersConfig(), ["abc"], (), False)
    task = build_task(LanguageModelConfig(), None, tokenizer)
    assert task.signature == Signature(NoSource(), Tokens(tokenizer.size), shared=False)
    model_input = task.prepare("ab")
    assert model_input.source is None
    assert model_input.prefix == tuple(tokenizer.encode("ab"))
    example = Example("", "ab", ("ab",), "here:1")
    assert task.source_text(example) == ""
    assert task.scores(["ab"], [example]) == []
