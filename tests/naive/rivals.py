"""Rules of other crawlers written plainly, in days: each takes one page's crawls and returns when it is due next."""

import math
from itertools import pairwise

MINUTE, HOUR, WEEK = 1 / 1440, 1 / 24, 7.0


def clip(x, low, high):
    return max(low, min(x, high))


class Page:
    """What a system knows of a page; ``dates`` are those of the changes found, ``due`` is what it decides."""

    def __init__(self, importance=1.0):
        self.importance, self.errors, self.dates, self.crawled_at = importance, 0, [], None

    def crawl(self, now, changed=False, failed=False):
        self.errors = self.errors + 1 if failed else 0
        if failed:
            return self.failed(now)
        first, self.crawled_at = self.crawled_at is None, now
        if first:
            return self.first(now)
        if changed:
            self.dates.append(now)
        return self.again(now, changed)

    def first(self, now):
        return self.again(now, False)


class Fixed(Page):
    def again(self, now, changed):
        return now + 30

    def failed(self, now):
        return now + 1


class Nutch(Page):
    interval, modified, signature = 30.0, None, False

    def first(self, now):
        return self.set_schedule(now, "unknown")

    def again(self, now, changed):
        return self.set_schedule(now, ("changed" if changed else "same") if self.signature else "unknown")

    def set_schedule(self, now, status):
        self.signature = True
        self.interval *= {"changed": 0.8, "same": 1.4, "unknown": 1.0}[status]
        if status == "changed" or self.modified is None:
            self.modified = now
        delta = now - self.modified
        if delta > self.interval:
            self.interval = delta
        offset = 0.3 * delta if 0.3 * delta <= 365 else 0.0
        self.interval = clip(self.interval, MINUTE, 365)
        due = now - offset + self.interval
        if self.interval > 90:
            self.interval, self.signature, self.modified = 81.0, False, None
        return due if due <= now + 90 else now

    def failed(self, now):
        if self.errors < 3:
            return now + 1
        self.interval = 1.5 * self.interval if self.interval < 90 else 81.0
        return now + self.interval


class StormCrawler(Page):
    low, high, start, decrease, retry = 60, 20160, 1440, 0.5, 2 * HOUR
    minutes = None

    def again(self, now, changed):
        if self.minutes is None:
            self.minutes = self.start
        elif changed:
            self.minutes = math.floor((1 - self.decrease) * self.minutes + self.decrease * self.low)
        else:
            self.minutes = min(math.floor(1.5 * self.minutes), self.high)
        return now + self.minutes * MINUTE

    def failed(self, now):
        self.minutes = None
        return now + self.retry if self.errors < 3 else math.inf


class CommonCrawlNews(StormCrawler):
    low, high, start, decrease, retry = 90, 90 * 1440, 720, 0.2, 3.0


class Heritrix(Page):
    interval = 1.0

    def first(self, now):
        return now + 1

    def again(self, now, changed):
        self.interval = clip(self.interval / 1.5 if changed else 1.5 * self.interval, HOUR, 28)
        return now + self.interval

    def failed(self, now):
        return now + 3


class InfoMesh(Page):
    share = 0.0

    def first(self, now):
        return now + self.interval()

    def again(self, now, changed):
        self.share = 0.7 * self.share + (0.3 if changed else 0.0)
        return now + self.interval()

    def interval(self):
        return 30 if self.share == 0 else 7 if self.share < 0.1 else 1 if self.share <= 0.5 else 0.25

    def failed(self, now):
        return now + self.interval() if self.errors < 3 else math.inf


class YaCy(Page):
    came = None

    def again(self, now, changed):
        self.came = now if self.came is None else self.came
        modified = self.dates[-1] if self.dates else self.came
        fresh_until = now + (now - modified) / 2
        day = math.floor(fresh_until)
        while not fresh_until < day - 1:
            day += 1
        return day

    def failed(self, now):
        return math.floor(now) + 1


class Miniflux(Page):
    def again(self, now, changed):
        recent = [date for date in self.dates if date >= now - WEEK]
        interval = 1.0
        if len(recent) > 1:
            gap = (max(recent) - min(recent)) / (len(recent) - 1)
            interval = clip(WEEK / math.ceil(WEEK / gap), 5 * MINUTE, 1.0)
        return math.ceil((now + interval) * 24 - 1e-6) / 24

    def failed(self, now):
        return self.again(now, False) if self.errors < 3 else math.inf


class CommaFeed(Page):
    def again(self, now, changed):
        dates = self.dates[-20:]
        if not dates:
            return now + 4 * HOUR
        for age, hours in ((30, 4), (14, 2), (7, 1)):
            if now - dates[-1] >= age:
                return now + hours * HOUR
        if len(dates) == 1:
            return now + 4 * HOUR
        gaps = [b - a for a, b in pairwise(dates)]
        return now + clip(sum(gaps) / len(gaps) / 2, 5 * MINUTE, HOUR)

    def failed(self, now):
        return now + (5 * MINUTE if self.errors < 3 else min(self.errors - 2, 4) * HOUR)


class NewsBlur(Page):
    def minutes(self, now):
        per_day = sum(date >= now - 30 for date in self.dates) / 30
        s = self.importance
        if per_day >= 1:
            return 6 if s >= 10 else 15 if s > 1 else 45
        if per_day > 0:
            return (60 if s > 1 else 360) * (1 - per_day)
        months = (now - self.dates[-1]) / 30 if self.dates else 1
        return (360 if s > 1 else 720 if s == 1 else 1440) * max(1, months)

    def again(self, now, changed):
        capped = min(self.minutes(now), 240 if self.importance >= 1 else 2880)
        return now + capped * MINUTE * 1.125

    def failed(self, now):
        capped = min(self.minutes(now), 240 if self.importance >= 1 else 2880)
        return now + min(self.errors * capped, 7 * 1440) * MINUTE * 1.125


class Norconex(Page):
    lastmod = None

    def again(self, now, changed):
        if self.lastmod is not None and self.lastmod <= now:
            return math.inf
        return math.floor(now) + 1

    def signal(self, now, changed_at):
        self.lastmod = changed_at if self.lastmod is None else max(self.lastmod, changed_at)
        return math.ceil(now) if self.crawled_at is None or self.lastmod > self.crawled_at else math.inf

    def failed(self, now):
        return math.floor(now) + 1


SYSTEMS = {
    "fixed": Fixed,
    "nutch": Nutch,
    "stormcrawler": StormCrawler,
    "commoncrawl-news": CommonCrawlNews,
    "heritrix": Heritrix,
    "infomesh": InfoMesh,
    "yacy": YaCy,
    "miniflux": Miniflux,
    "commafeed": CommaFeed,
    "newsblur": NewsBlur,
    "norconex": Norconex,
}
