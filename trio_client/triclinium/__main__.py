"""Entry point of ``python -m triclinium``, for systems where the command is not on the path."""

from __future__ import annotations

from triclinium._cli import main

if __name__ == "__main__":
    main(prog_name="python -m triclinium")
