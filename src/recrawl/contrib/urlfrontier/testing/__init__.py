"""Checks of the published rules of the URL Frontier API against any service.

- ``await check_address("127.0.0.1:7071")`` checks a running service, in real time; all that it puts in is in crawls
  with names of their own, which it deletes. For the command: ``recrawl urlfrontier --check 127.0.0.1:7071``.
- ``await check_frontier(bench)`` does the same with a `Bench` that has a clock and a restart of its own.

A service that is ``managed`` decides itself which URL is next: rules about the order of dates do not apply to it.
"""

from recrawl.contrib.urlfrontier.testing.checking import Bench as Bench
from recrawl.contrib.urlfrontier.testing.checking import Result as Result
from recrawl.contrib.urlfrontier.testing.checking import check_address as check_address
from recrawl.contrib.urlfrontier.testing.checking import check_frontier as check_frontier

__all__ = ["Bench", "Result", "check_address", "check_frontier"]
