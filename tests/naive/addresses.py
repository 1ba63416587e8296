"""Twin of the arena of names and of Addresses: Python texts in a dict."""

from recrawl.engine.names.addresses import host_of


class NaiveAddresses:
    """URLs by id; one that was removed and comes again gets a new id."""

    def __init__(self):
        self.urls, self.ids = [], {}

    def add(self, urls):
        out = []
        for url in urls:
            if url not in self.ids:
                self.append([url])
            out.append(self.ids[url])
        return out

    def append(self, urls):
        for url in urls:
            self.ids[url] = len(self.urls)
            self.urls.append(url)

    def known(self, urls):
        return [self.ids.get(url, -1) for url in urls]

    def withdraw(self, n):
        for url in self.urls[n:]:
            del self.ids[url]
        del self.urls[n:]

    def forget(self, ids):
        for i in ids:
            if self.ids.get(self.urls[i]) == i:
                del self.ids[self.urls[i]]

    def on_host(self, host):
        return [i for i, url in enumerate(self.urls) if host_of(url) == host and self.ids.get(url) == i]
