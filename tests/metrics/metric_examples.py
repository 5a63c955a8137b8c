"""Outputs and references that several tests of metrics use."""

REFERENCES = [
    "the cat sat on the mat today",
    "Tom likes to play chess with Mary",
    "Where is the dog now ?",
]
OUTPUTS = [
    "the cat sat on a mat today",
    "tom likes to play cards with Mary",
    "Where is the dog now ?",
]


def single_references(lines: list[str]) -> list[list[str]]:
    """One reference per sentence."""
    return [[line] for line in lines]
