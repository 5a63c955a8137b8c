"""Benchmarks of seqloom: speed, scores and comparisons with other toolkits. See README.md."""
