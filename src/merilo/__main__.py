"""`python -m merilo` is the command `merilo`."""

from __future__ import annotations

import sys
import traceback


def main() -> None:
    """Run the command line. Exits with 70 for an error of its start: Python's 1 is the code of a failed gate."""
    try:
        from merilo.cli import main as command

        command()
    except Exception:  # noqa: BLE001  a broken installation may raise anything
        traceback.print_exc()
        sys.exit(70)


if __name__ == "__main__":
    main()
