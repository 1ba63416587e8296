"""Checks of the files that a command will write, made before the work starts."""

from __future__ import annotations

from pathlib import Path

from recrawl.errors import ParameterError


def check_outputs(output: Path | None, plot: Path | None) -> None:
    """Raise ParameterError if the table or the plot could not be written."""
    if output is not None:
        if output.suffix.lower() not in (".csv", ".parquet", ".pq"):
            raise ParameterError(f"{output}: the suffix of an output must be .csv or .parquet")
        check_folder(output)
    if plot is not None:
        check_plot(plot)


def check_plot(path: Path) -> None:
    """Raise ParameterError if the plot could not be written, or matplotlib is missing."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"{path}: the suffix of a plot must be .png, .svg or .pdf")
    check_folder(path)
    need_matplotlib("--plot needs")


def check_folder(path: Path) -> None:
    """Raise ParameterError if the folder of a file does not exist."""
    if not path.parent.is_dir():
        raise ParameterError(f"{path}: the folder {path.parent} does not exist")


def need_matplotlib(what: str) -> None:
    """Raise ParameterError if matplotlib is missing; ``what`` starts the message, such as "--plot needs"."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ParameterError(f"{what} matplotlib: pip install 'recrawl[data]'") from None
