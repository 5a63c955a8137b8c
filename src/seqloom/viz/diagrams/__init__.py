"""Diagrams of models for teaching, as SVG: recurrent networks, search trees, attention, layers."""
