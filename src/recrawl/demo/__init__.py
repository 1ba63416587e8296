"""The changing web on loopback: pages whose changes are known, served, crawled live and judged by what truly happened."""
