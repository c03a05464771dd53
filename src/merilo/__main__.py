"""`python -m merilo` is the command `merilo`."""

from merilo.cli import main

main()
