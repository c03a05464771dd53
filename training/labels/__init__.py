"""Labelled records, curves fitted to them, and agreement with human labels."""
