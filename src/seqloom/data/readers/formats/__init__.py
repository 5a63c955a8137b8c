"""Readers of file formats: tables, records and translation memories."""
