"""Fine-tuning: training that starts from the weights of another run."""
