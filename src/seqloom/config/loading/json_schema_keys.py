"""The part of the JSON Schema that rejects unknown keys of a recipe.

The schema of an unknown key matches no value. It contains the same error message that the command
line prints. The JSON Schema standard has no keyword for error messages, so the message is in two
places:

- Visual Studio Code and ajv-errors show the value of `errorMessage`.
- Other validators show the schema itself: {"not": {"description": message}}.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from seqloom.config.loading.defaults import UnknownKey
from seqloom.config.loading.error_messages import (
    NO_SUCH_SETTING,
    explain_unknown_key,
    suggest_key,
)
from seqloom.config.loading.fields import KeyPath, all_sections
from seqloom.config.loading.misspellings import by_priority, misspellings
from seqloom.config.schema.recipe import RunConfig

Schema = dict[str, Any]

UNKNOWN = "UnknownKey"
"""Name of the definition of an unknown key without a suggestion. "UnknownKey.steps" is the
definition of a misspelt `steps`."""


def unknown_key_definitions(keys: Iterable[str]) -> Schema:
    """Return the JSON Schema definitions that reject unknown keys, each with an error message.

    For each valid key, one definition rejects its misspellings and suggests the valid key. One more
    definition rejects all other unknown keys. The schemas from `reject_unknown_keys` refer to these
    definitions.

    keys: the valid keys of all tables
    """
    suggestions = {f"{UNKNOWN}.{key}": _reject(suggest_key(key)) for key in sorted(set(keys))}
    return {UNKNOWN: _reject(NO_SUCH_SETTING), **suggestions}


def reject_unknown_keys(keys: Sequence[str], paths: Sequence[KeyPath]) -> Schema:
    """Return the part of a table's schema that rejects unknown keys.

    If a rejected key is a misspelling of a valid key, the error message suggests the valid key. The
    command line makes the same suggestions.

    keys:  the keys that the table accepts
    paths: the paths at which a recipe can have this table
    """
    patterns: Schema = {}
    names = dict.fromkeys((*keys, *_keys_of_all_tables()))
    ordered = by_priority(keys)
    for index, key in enumerate(ordered):
        edits = misspellings(key)
        # The command line suggests the first key that is one edit away, so the pattern of a key
        # does not match the misspellings of the keys before it.
        earlier = (
            f"(?:{misspellings(other)})" for other in ordered[:index] if _share_edits(key, other)
        )
        exact = [*filter(re.compile(edits).fullmatch, names)]
        others = "|".join(f"{each}$" for each in [*exact, *earlier])
        patterns[f"^(?!{others})(?:{edits})$"] = ref(f"{UNKNOWN}.{key}")
        for name in exact:
            if name not in keys:
                patterns[f"^{name}$"] = _reject_key_of_other_table(name, keys, paths)
    return {"patternProperties": patterns, "additionalProperties": ref(UNKNOWN)}


def _share_edits(word: str, other: str) -> bool:
    """Return whether the two words may have a misspelling in common.

    A misspelling is one edit away from a word. So words that differ in more than two letters have
    no misspelling in common.
    """
    common = (Counter(word) & Counter(other)).total()
    return max(len(word), len(other)) - common <= 2


@cache
def _keys_of_all_tables() -> tuple[str, ...]:
    sections = (section for _, section in all_sections(RunConfig))
    return tuple(dict.fromkeys(name for section in sections for name in section.model_fields))


def _reject_key_of_other_table(name: str, keys: Sequence[str], paths: Sequence[KeyPath]) -> Schema:
    """Return a JSON Schema that rejects a key which is valid only in another table.

    The error message is that of the command line, which suggests the other table. If this message
    differs between `paths`, the schema contains a general message without a suggestion.

    name:  the rejected key. It is one edit away from one of `keys`, but it is not treated as a
           misspelling, because it is valid in another table
    keys:  the keys that this table accepts
    paths: the paths at which a recipe can have this table
    """
    messages = {explain_unknown_key(UnknownKey((*path, name), (*keys,))) for path in paths}
    return _reject(messages.pop()) if len(messages) == 1 else ref(UNKNOWN)


def _reject(message: str) -> Schema:
    return {"not": {"description": message}, "errorMessage": message}


def ref(name: str) -> Schema:
    """Return a JSON Schema reference to the definition with this name."""
    return {"$ref": f"#/definitions/{name}"}
