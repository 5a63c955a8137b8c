"""Converts generated tokens to text, token by token, and ends outputs at stop texts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqloom.serving.api.openai.schemas import FinishReason
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import SPECIAL_TOKENS

INCOMPLETE = "\ufffd"
"""Tokenizers decode an incomplete UTF-8 character to this one."""


class IncrementalText:
    """Computes the text that each generated token adds to the text so far.

    decode: converts tokens to text
    prefix: tokens of the prompt
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], prefix: Sequence[int]) -> None:
        self._decode = decode
        self._tokens = list(prefix)
        self._text = decode(self._tokens)

    def add(self, token: int) -> str:
        """Append a token. Return the text that it adds, or "" while a character is incomplete."""
        self._tokens.append(token)
        text = self._decode(self._tokens)
        if text.endswith(INCOMPLETE):
            return ""
        return self._replace_text(text)

    def flush(self) -> str:
        """Return the rest of the text. Call this after the last token."""
        return self._replace_text(self._decode(self._tokens))

    def _replace_text(self, text: str) -> str:
        """Store a new text. Return its end, starting where it first differs from the old text."""
        pairs = enumerate(zip(self._text, text, strict=False))
        shorter = min(len(self._text), len(text))
        start = next((index for index, (old, new) in pairs if old != new), shorter)
        self._text = text
        return text[start:]


class StopFilter:
    """Ends a text before the first stop text. The client chooses the stop texts.

    The end of the text is held back while it may be the beginning of a stop text.

    stopped: True if a stop text was found
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.stopped = False

    def feed(self, text: str) -> str:
        """Append a text. Return the text that can be sent now.

        The end of the text is held back while it may be the beginning of a stop text.
        """
        certain = ""
        for character in text:
            if self.stopped:
                break
            self._held += character
            matches = [stop for stop in self._stops if self._held.endswith(stop)]
            if matches:
                self.stopped = True
                certain += self._held.removesuffix(max(matches, key=len))
                self._held = ""
                break
            length = self._possible_start()
            certain += self._held[: len(self._held) - length]
            self._held = self._held[len(self._held) - length :]
        return certain

    def flush(self) -> str:
        """Return the text that was held back. Call this at the end of the output."""
        held, self._held = self._held, ""
        return held

    def _possible_start(self) -> int:
        """Return the length of the longest suffix of the text that is the start of a stop text."""
        return max(
            (
                length
                for stop in self._stops
                for length in range(1, len(stop))
                if self._held.endswith(stop[:length])
            ),
            default=0,
        )


def token_text(tokenizer: Tokenizer, before: Sequence[int], token: int) -> str:
    """Return the text that a token adds after other tokens.

    Special tokens and parts of characters add no text of their own. For them, returns the name of
    the token, such as </s>.
    """
    if token < len(SPECIAL_TOKENS):
        return tokenizer.pieces([token])[0]
    text = IncrementalText(tokenizer.decode, before).add(token)
    return text or tokenizer.pieces([token])[0]


@dataclass(frozen=True)
class OutputTokens:
    """The tokens of one output, without the prompt and END.

    texts: the text that each token adds. Joined, these are the text of the output.
    """

    tokens: tuple[int, ...]
    texts: tuple[str, ...]
    log_probabilities: tuple[float, ...]
    finish_reason: FinishReason


def output_tokens(
    text: IncrementalText,
    tokens: Sequence[int],
    log_probabilities: Sequence[float],
    stops: Sequence[str],
    finished: bool,
) -> OutputTokens:
    """Return the tokens up to the first stop text, and the text that each of them adds.

    text:     computes the text that each token adds
    tokens:   the new tokens, without END
    stops:    the stop texts, which the client has chosen. The output ends before the first of them
    finished: True if the model generated END
    """
    stop_filter = StopFilter(stops)
    texts: list[str] = []
    for token in tokens:
        texts.append(stop_filter.feed(text.add(token)))
        if stop_filter.stopped:
            break
    if texts and not stop_filter.stopped:
        texts[-1] += stop_filter.feed(text.flush()) + stop_filter.flush()
    count = len(texts)
    return OutputTokens(
        tuple(tokens[:count]),
        tuple(texts),
        tuple(log_probabilities[:count]),
        "stop" if finished or stop_filter.stopped else "length",
    )
