"""Short everyday sentences from Tatoeba, as data. See ATTRIBUTION.md."""
