"""The request of a batch translation: everything that determines its output.

The output folder stores the request. A later command can continue the translation only if its
request is the same.
"""

from collections.abc import Mapping
from typing import Any

TranslationRequest = Mapping[str, Any]
"""Everything that determines the output, as JSON values. "options" is a dictionary of options."""


def request_differences(old: TranslationRequest, new: TranslationRequest) -> list[str]:
    """Return the names of the entries in which two requests differ.

    For the entry "options", return the names of the options that differ.
    """
    names = [
        name
        for name in dict.fromkeys((*old, *new))
        if name != "options" and old.get(name) != new.get(name)
    ]
    before, after = old.get("options", {}), new.get("options", {})
    options = dict.fromkeys((*before, *after))
    return names + [name for name in options if before.get(name) != after.get(name)]
