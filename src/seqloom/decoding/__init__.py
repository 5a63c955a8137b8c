"""Search: from a decoder's answers to whole outputs. Nothing here knows which model it has."""
