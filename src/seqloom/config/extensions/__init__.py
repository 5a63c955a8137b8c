"""Settings of extensions in recipes: section classes made from the parameters of an extension."""
