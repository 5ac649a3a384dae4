"""What the `wellhead` script calls: signals first, then everything else, so that Ctrl-C is safe during imports too."""

from __future__ import annotations

import sys

from wellhead.doors.cli import interrupt

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with one of its codes."""
    interrupt.install()
    try:
        from wellhead.doors.cli.group import cli
        from wellhead.doors.cli.output import survive_any_encoding

        survive_any_encoding()
        cli.main(prog_name="wellhead")
    except BaseException as error:
        # Only what happens before the group takes over arrives here; the group ends with SystemExit.
        if isinstance(error, SystemExit) or not interrupt.happened(error):
            raise
        interrupt.goodbye()
        sys.exit(interrupt.exit_code())


if __name__ == "__main__":
    main()
