"""Commands that move a crawl's data: backups, copies, exports, imports."""
