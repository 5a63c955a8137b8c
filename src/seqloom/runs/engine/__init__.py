"""Engines that replace the torch search on a CPU: CTranslate2 and compiled search."""
