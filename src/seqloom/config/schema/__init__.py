"""The sections of a recipe as pydantic models, one module per section."""
