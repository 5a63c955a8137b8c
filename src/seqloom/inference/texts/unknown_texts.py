"""Messages about characters and words of source texts that the vocabulary does not contain."""

from collections.abc import Sequence

from seqloom.inference.prediction import Prediction
from seqloom.inference.texts.input_reports import report_messages
from seqloom.inference.texts.preparation import unknown_parts
from seqloom.tasks.token_task import TokenTask


def unknown_messages(task: TokenTask, texts: Sequence[str], unit: str) -> list[str]:
    """Return a message if some texts contain characters or words that the vocabulary lacks.

    unit: word for a text in the message, for example "text" or "source"
    """
    if task.source_tokenizer is None:
        return []
    found = [Prediction("", 0.0, unknown=unknown_parts(task, text)) for text in texts]
    return report_messages(found, task.source_tokenizer.unknown_unit, unit)
