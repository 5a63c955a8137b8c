"""Helpers of several test folders: small runs and recipes, servers, faults, toy models."""
