"""Training of the embedded judge's encoders."""
