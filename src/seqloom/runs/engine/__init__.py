"""CTranslate2 as the engine of Transformers on a CPU."""
