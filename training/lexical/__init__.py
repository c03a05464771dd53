"""Fitting the lexical judge: records to rows, rows to coefficients, and agreement with people."""
