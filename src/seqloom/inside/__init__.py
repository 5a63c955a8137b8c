"""What happens inside a trained model: one step laid open, and gradients through time."""
