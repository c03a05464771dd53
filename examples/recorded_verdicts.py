"""Record the verdicts of the embedded judge that `merilo demo` uses: `python examples/recorded_verdicts.py`.

Run it after each change of the judge: verdicts of another judge are not found, and the demo then takes longer.
"""

import lzma
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import merilo
from merilo.commands.demo.cli import BASE, CHANGED, DATA, METRICS, RECORDED

EXAMPLES = Path(__file__).parent.parent / "src" / "merilo" / "examples"


def main() -> None:
    """Judge both retrievers into a new verdict cache, and store it compressed."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "verdicts.sqlite"
        for name in (BASE, CHANGED):
            merilo.evaluate(EXAMPLES / DATA[name], METRICS, out=Path(folder) / name, storage={"cache": cache})
        with closing(sqlite3.connect(cache)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute("VACUUM")
        (EXAMPLES / RECORDED).write_bytes(lzma.compress(cache.read_bytes(), preset=9))


if __name__ == "__main__":
    main()
