"""`python -m merilo` is the command `merilo`."""

from merilo.cli.main import main

main()
