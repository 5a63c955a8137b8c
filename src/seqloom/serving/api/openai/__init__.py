"""The part of the OpenAI API that language models need: /v1/models and /v1/completions."""
