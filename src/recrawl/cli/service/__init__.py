"""Commands for services and machines: HTTP, URL Frontier, clusters, tokens, compiled kernels."""
