"""Every exception recrawl raises on purpose.

RecrawlError
└── ParameterError (also a ValueError)    a value, column, file or option the caller gave cannot be used
"""


class RecrawlError(Exception):
    """Base of all errors that recrawl raises on purpose."""


class ParameterError(RecrawlError, ValueError):
    """A value the caller gave cannot be used; the message names the column and the first bad row."""
