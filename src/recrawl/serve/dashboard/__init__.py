"""The dashboard of a running crawl: pages rendered by the server, for people."""
