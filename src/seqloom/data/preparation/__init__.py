"""Tokenises splits into shards: folders of memory-mapped arrays, built by several processes."""
