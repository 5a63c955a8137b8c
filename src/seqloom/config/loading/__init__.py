"""Reading recipes: TOML, presets, overrides, defaults, renamed settings and error messages."""
