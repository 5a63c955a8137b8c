"""Reading recipes: TOML, presets, overrides, defaults and error messages."""
