"""Engines that are faster than the plain torch search on a CPU: CTranslate2 and compiled search."""
