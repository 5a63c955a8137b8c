"""The lab: reproducible experiments that test claims from lectures on sequence models.

claims/     one module per claim: conditions, measurement, judgement, charts
models/     trained models, random models and toy languages that several claims share
running/    runs every condition with every seed and caches the measurements
reporting/  reports as objects, JSON and HTML

claim.py, results.py and verdict.py define the types; registry.py finds claims by name.
"""
