"""Generated data: scenes, gestures, robot paths and questions."""
