"""The HTTP interface of a running crawl: what others may tell it."""

from typing import TYPE_CHECKING

from recrawl._lazy import attach

if TYPE_CHECKING:
    from recrawl.serve.api.service import Service as Service
    from recrawl.serve.app import Context as Context
    from recrawl.serve.app import build_app as build_app
    from recrawl.serve.running import serve_service as serve_service
    from recrawl.serve.server import HttpServer as HttpServer
    from recrawl.serve.server import serve_crawl as serve_crawl
    from recrawl.serve.starting import Front as Front

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "api.service": ["Service"],
        "app": ["Context", "build_app"],
        "running": ["serve_service"],
        "server": ["HttpServer", "serve_crawl"],
        "starting": ["Front"],
    },
)
