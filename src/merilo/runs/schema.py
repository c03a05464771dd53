"""The tables of a run's store, and every text of them that a store of some format may have."""

from __future__ import annotations

from typing import Final

from merilo.runs.database import schema_texts

INDEXES: Final = (
    "CREATE INDEX samples_seal ON samples (seal)",
    "CREATE INDEX exchanges_seal ON exchanges (seal)",
    "CREATE INDEX answers_seal ON answers (seal, row_seal)",
)
"""Indexes from which SQLite sums the checksums."""

SCHEMA: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE samples (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL, seal INTEGER)",
    "CREATE TABLE texts (digest BLOB NOT NULL, text TEXT NOT NULL)",
    "CREATE UNIQUE INDEX texts_digest ON texts (digest)",
    """CREATE TABLE exchanges (id INTEGER PRIMARY KEY, judge TEXT NOT NULL, rubric BLOB NOT NULL,
    replies TEXT NOT NULL, requests INTEGER NOT NULL, input_tokens INTEGER, output_tokens INTEGER,
    cost_usd REAL, seconds REAL NOT NULL, seal INTEGER)""",
    """CREATE TABLE answers (key BLOB NOT NULL, kind TEXT NOT NULL, question TEXT NOT NULL,
    verdict TEXT, failure TEXT, cached INTEGER NOT NULL, exchange INTEGER, seal INTEGER,
    row_seal INTEGER)""",
    "CREATE UNIQUE INDEX answers_key ON answers (key)",
    "CREATE TABLE unfinished (key BLOB PRIMARY KEY, exchange INTEGER NOT NULL, seal INTEGER NOT NULL)",
    *INDEXES,
)
"""The tables of the current format."""


def _all_formats() -> frozenset[str]:
    """Return the texts of the schemas of all formats: earlier ones lack the last columns and some tables."""
    found = {*schema_texts(SCHEMA)}
    for column in (", row_seal INTEGER)", ", seal INTEGER)"):  # the order in which the last ones were added, backwards
        found |= {f"{each.removesuffix(column)})" for each in found if each.endswith(column)}
    samples = [each for each in found if each.startswith("CREATE TABLE samples ")]
    for name in ('"samples"', "incoming"):  # samples that are being added, and those that replaced others
        found.update(each.replace("samples", name, 1) for each in samples)
    return frozenset(found)


STORE_SCHEMA: Final = _all_formats()
"""What the schema of a store may consist of, for `connected` and `read_only`."""
