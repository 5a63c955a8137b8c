"""Measurements of seqloom, alone and beside its peers. Run from the repository's root."""
