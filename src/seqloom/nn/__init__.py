"""The parts: scores, attention, positions, recurrent and Transformer layers, losses."""
