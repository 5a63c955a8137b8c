"""Ids and pieces. The four special tokens have the same ids in every vocabulary."""

PAD = 0
START = 1
END = 2
UNKNOWN = 3
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
