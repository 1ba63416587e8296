"""Packages that come with an extra, such as ``recrawl[crawl]``, and what is said where they are missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from recrawl.errors import ParameterError

EXTRAS = {
    "crawl": [
        "aiohttp",
        "yarl",
        "idna",
        "brotli",
        "protego",
        "w3lib",
        "lxml",
        "xxhash",
        "selectolax",
        "re2",
        *(["backports.zstd"] if sys.version_info < (3, 14) else []),
    ],
    "serve": ["fastapi", "uvicorn", "jinja2", "prometheus_client"],
    "data": ["pyarrow", "matplotlib"],
    "postgres": ["asyncpg"],
    "warc": ["warcio"],
    "browser": ["playwright"],
    "urlfrontier": ["grpc", "google.protobuf"],
    "ray": ["ray"],
    "predict": ["lightgbm"],
    "deep": ["jax", "optax"],
}  # modules by extra


def need(extra: str) -> None:
    """Raise ParameterError if a package of an extra is missing."""
    for module in EXTRAS[extra]:
        if not _is_installed(module):
            raise ParameterError(_line(module, extra))


def has(extra: str) -> bool:
    """Whether the packages of an extra are installed."""
    return all(_is_installed(module) for module in EXTRAS[extra])


def missing_package(problem: ImportError) -> str | None:
    """What to install after a failed import; None if the missing module is not of an extra."""
    name = problem.name or ""
    for extra, modules in EXTRAS.items():
        for module in modules:
            if name == module or name.startswith(f"{module}.") or name == module.partition(".")[0]:
                return _line(module, extra)
    return None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def _line(module: str, extra: str) -> str:
    return f"this command needs {module}: pip install 'recrawl[{extra}]'"
