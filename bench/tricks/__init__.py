"""What each trick of training and decoding is worth: `python -m bench.tricks`."""
