"""Errors, padded sequences, signatures: what every other room stands on."""
