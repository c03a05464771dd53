"""The tables of a run's store, and the one format number of a run."""

from __future__ import annotations

from typing import Final

from merilo.runs.database import schema_texts

FORMAT: Final = 5
"""The format of a run: its store, its manifest and its seal. A run of another format is refused."""

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
"""The tables of a store."""
EXCHANGE_SEALED: Final = "id, judge, rubric, replies, requests, input_tokens, output_tokens, cost_usd, seconds"
ANSWER_SEALED: Final = "key, kind, question, cached, exchange"
"""The columns that the seal of a row covers, in this order."""
_SAMPLES: Final = schema_texts([each for each in SCHEMA if each.startswith("CREATE TABLE samples ")])
STORE_SCHEMA: Final = schema_texts(SCHEMA) | {
    each.replace("samples", name, 1) for each in _SAMPLES for name in ('"samples"', "incoming")
}
"""What the schema of a store may consist of, for `connected` and `read_only`: also samples that are being added, and
those that replaced others."""
