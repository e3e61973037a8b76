"""`python -m phalanx`: the same as the `phalanx` command."""

from phalanx.cli.main import main

main()
