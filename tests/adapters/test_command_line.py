"""Files of other systems are read from the command line."""

from pathlib import Path

import pyarrow as pa
from command_line import Here
from pyarrow import parquet

ROWS = [{"question": "When?", "contexts": ["In 1889."], "answer": "1889", "rank": 1}]


def test_a_parquet_file_is_evaluated(tmp_path: Path) -> None:
    """`merilo run rows.parquet` reads the table, and its summary reports columns that are renamed and unread."""
    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    done = Here(tmp_path).merilo("run", "rows.parquet", "--metrics", "context_relevance", "--full")
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "Read question as user_input, contexts as retrieved_contexts, answer as response." in shown
    assert "Kept in the metadata, unread: rank." in shown
