"""A URL Frontier: crawlers that speak its API, such as StormCrawler, get their URLs from recrawl.

Needs `pip install 'recrawl[urlfrontier,crawl]'`.

- ``recrawl urlfrontier --port 7071`` serves the published API, version 2.6, by gRPC.
- A crawl ID is *strict*, the dates of the client order its queues, or *managed*, the engine of a database decides and
  what clients put are observations (`Modes`).
- `FrontierService` is the service in a process of your own, `FrontierClient` a small client.
- `recrawl.contrib.urlfrontier.testing` checks the published rules against any ``host:port``.
"""

import os
from typing import TYPE_CHECKING

from recrawl._lazy import attach

# A copy of the process writes checkpoints. gRPC would start threads in it, which fail there and end it.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

if TYPE_CHECKING:
    from recrawl.contrib.urlfrontier.api.client import FrontierClient as FrontierClient
    from recrawl.contrib.urlfrontier.api.server import GrpcServer as GrpcServer
    from recrawl.contrib.urlfrontier.running import FrontierService as FrontierService
    from recrawl.contrib.urlfrontier.running import Modes as Modes
    from recrawl.contrib.urlfrontier.running import serve_frontier as serve_frontier

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "api.client": ["FrontierClient"],
        "running": ["FrontierService", "Modes", "serve_frontier"],
        "api.server": ["GrpcServer"],
    },
)
