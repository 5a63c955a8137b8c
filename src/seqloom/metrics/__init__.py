"""Numbers that say how good outputs are. Strings and numbers only: nothing here knows a model."""
