"""The share of the event loop's time for requests with signals: its accounts, who waits, and who is turned away."""

import asyncio
import json
import random

import h11
import pytest

from recrawl._system import loops
from recrawl._system.loops import MeasuredLoop, idle_of_loop, stepped
from recrawl.crawl.http.memory import ManualClock
from recrawl.serve.problems import ProblemError
from recrawl.serve.receive.refusal import busy_answer, turned_away
from recrawl.serve.receive.share import LoopShare, LoopTimes

from .serving import URLS, Interface, with_interface

SHARE = 0.1


class World:
    """A loop in a time of its own: a crawl of ``takes`` seconds in each period, if it can, and requests."""

    def __init__(self, *, takes, period, most_waiting=64):
        self.time = self.idle = self.for_signals = 0.0
        self.takes, self.period = takes, period
        self.crawls = self.served = self.refused = self.most_seen = 0
        times = LoopTimes(lambda: self.idle, now=lambda: self.time - self.idle, sleep=self.sleep)
        self.share = LoopShare(SHARE, times, most_waiting=most_waiting)

    async def sleep(self, seconds):
        at = self.time + seconds
        while self.time < at:
            await asyncio.sleep(0)

    async def crawl(self, until):
        while self.time < until:
            self.time += self.takes
            self.crawls += 1
            await asyncio.sleep(0)
            left = max(self.crawls * self.period - self.time, 0.0)
            self.time += left
            self.idle += left

    async def request(self, cost, refusal):
        ticket = self.share.ticket()
        try:
            await ticket.admit()
        except ProblemError:
            self.refused += 1
            cost = refusal
        else:
            self.served += 1
        self.time += cost
        self.for_signals += cost
        ticket.charge(cost)
        ticket.end()

    async def flood(self, rate, until, cost, refusal):
        running, sent = set(), 0
        while self.time < until:
            for _ in range(int(self.time * rate) - sent):
                running.add(asyncio.create_task(self.request(cost, refusal)))
                sent += 1
            self.most_seen = max(self.most_seen, self.share.waiting)
            await asyncio.sleep(0)
        return running, sent

    def run(self, seconds, *, rate=250.0, cost=0.002, refusal=0.00005):
        """Requests at a rate for some seconds; how many came."""

        async def work():
            crawling = asyncio.create_task(self.crawl(2.0 * seconds))
            running, sent = await self.flood(rate, seconds, cost, refusal)
            self.by_then = self.for_signals
            await asyncio.gather(crawling, *running)
            return sent

        return asyncio.run(work())


@pytest.mark.parametrize("cost", [0.0005, 0.002, 0.02])
@pytest.mark.parametrize("rate", [200.0, 1000.0])
def test_a_crawl_that_wants_the_loop_keeps_nine_tenths_of_it(rate, cost):
    world = World(takes=0.003, period=0.003)
    sent = world.run(20.0, rate=rate, cost=cost)
    wanted = min(SHARE, rate * cost)
    assert 0.9 * wanted <= world.by_then / 20.0 <= SHARE + 0.002
    assert world.served + world.refused == sent
    assert world.share.waiting == 0
    assert world.most_seen <= 64


def test_signals_have_all_that_nobody_else_wants():
    world = World(takes=0.001, period=0.005)
    sent = world.run(20.0, rate=200.0, cost=0.0025)  # half of the time, where the crawl takes a fifth
    assert (world.served, world.refused) == (sent, 0)
    assert world.crawls == pytest.approx(world.time / world.period, rel=1e-3)


@pytest.mark.parametrize("takes", [0.0005, 0.0025, 0.004, 0.0045])
def test_a_crawl_that_leaves_time_keeps_its_pace_in_a_flood(takes):
    world = World(takes=takes, period=0.005)
    world.run(20.0, rate=1000.0, cost=0.002)
    free = 1.0 - takes / world.period
    assert 0.4 * free <= world.by_then / 20.0 <= 2.0 / 3.0 * free + SHARE
    assert world.crawls >= 0.98 * world.time / world.period


def test_nobody_is_limited_while_the_budget_does_not_lapse():
    world, lapsed = World(takes=0.003, period=0.003), [7.0]
    times = LoopTimes(lambda: 0.0, now=lambda: world.time, wall=lambda: world.time, sleep=world.sleep)
    world.share = LoopShare(SHARE, times, most_waiting=0, lapsed=lambda: lapsed[0])
    world.run(10.0, rate=200.0, cost=0.004)
    assert world.refused == 0
    lapsed[0] += 1.0
    world.share.charge(0.2)
    assert world.share._due() > 0.0
    world.time += 5.1
    world.share.charge(0.2)
    assert world.share._due() == 0.0


def test_refusals_beyond_the_share_are_forgotten_soon():
    world = World(takes=0.003, period=0.003, most_waiting=0)
    world.run(5.0, rate=3000.0, refusal=0.001)
    assert world.share.is_full
    assert world.share.turn_away() <= 10


def test_a_quiet_time_saves_little():
    world = World(takes=0.003, period=0.003)
    world.time = 1e6
    world.share.charge(0.05)
    assert world.share._due() == pytest.approx(0.0)
    world.share.charge(0.02)
    assert world.share._due() == pytest.approx(0.02)


def test_a_request_that_is_given_up_leaves_the_queue():
    world = World(takes=0.01, period=0.01)

    async def work():
        world.share.charge(0.5)
        first, second = (asyncio.create_task(world.request(0.001, 0.0)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(world.crawl(20.0), second)
        return world.served, world.share.waiting, world.share.reserved

    assert asyncio.run(work()) == (1, 0, pytest.approx(0.0))


# --- by HTTP ----------------------------------------------------------------------------------------------------------


def behind(clock, most_waiting):
    """A share whose time is that of a manual clock, and which owes a second."""
    times = LoopTimes(lambda: 0.0, now=clock.now, sleep=clock.sleep)
    share = LoopShare(SHARE, times, most_waiting=most_waiting)
    share.charge(1.0)
    return share


async def until(check):
    while not check():
        await asyncio.sleep(0.001)


def test_what_waits_is_taken_and_what_is_turned_away_is_not():
    clock = ManualClock()
    share = behind(clock, 2)

    async def test(one):
        waiting = [asyncio.create_task(one.post([url])) for url in URLS[:2]]
        await until(lambda: share.waiting == 2)
        refused = [await one.post([url]) for url in URLS[2:5]]
        assert [status for status, _, _ in refused] == [429] * 3
        assert [int(headers["retry-after"]) for _, headers, _ in refused] == [10] * 3
        assert {found["detail"] for _, _, found in refused} == {"the crawl is busy: nothing was taken"}
        assert await one.store.signals() == []
        while not all(task.done() for task in waiting):
            await clock.advance(1.0)
            await asyncio.sleep(0.001)
        assert [(await task)[0] for task in waiting] == [200, 200]
        assert clock.now() >= 9.0
        assert {found.url for found in await one.store.signals()} == set(URLS[:2])
        assert (await one.post([URLS[3]]))[0] == 429 if share.is_full else 200

    with_interface(test, share=share)


def test_others_are_answered_while_signals_wait():
    share = behind(ManualClock(), 0)

    async def test(one):
        assert (await one.post([URLS[0]]))[0] == 429
        assert (await one.post([URLS[0]], path="/v1/nothing"))[0] == 404
        assert (await one.post([URLS[0]], path="/indexnow"))[0] == 429
        assert (await one.post([URLS[0]], path="/websub/abc"))[0] == 429
        async with one.client.get(f"{one.url}/websub/abc") as answer:
            assert answer.status == 404  # verifications are answered

    with_interface(test, share=share)


def request_bytes(body, *headers):
    """A post with signals."""
    head = ["POST /v1/signals HTTP/1.1", "host: 127.0.0.1", *headers, f"content-length: {len(body)}", "", ""]
    return "\r\n".join(head).encode() + body


async def answers_of(reader, n):
    """The statuses of n answers on a connection."""
    found = []
    for _ in range(n):
        head = await reader.readuntil(b"\r\n\r\n")
        found.append(int(head.split()[1]))
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        json.loads(await reader.readexactly(int(length.partition(b":")[2])))
    return found


def test_a_connection_goes_on_after_requests_that_were_turned_away():
    clock = ManualClock()
    share = behind(clock, 0)

    async def test(one):
        host, _, port = one.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = json.dumps([URLS[0]]).encode()
        sent = request_bytes(body)
        writer.write(sent + sent)  # two at once
        assert await answers_of(reader, 2) == [429, 429]
        for part in (sent[:-5], sent[-5:]):  # the body in two parts
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.01)
        assert await answers_of(reader, 1) == [429]
        writer.write(sent[:30])  # the head in two parts: it is parsed in full
        await asyncio.sleep(0.01)
        writer.write(sent[30:])
        assert await answers_of(reader, 1) == [401 if b"authorization" not in sent else 429]
        share._most = 64
        await clock.advance(20.0)
        writer.write(request_bytes(body, f"authorization: Bearer {one.token}"))
        assert await answers_of(reader, 1) == [200]
        writer.close()

    with_interface(test, share=share)


@pytest.mark.parametrize("seed", range(3))
def test_requests_in_any_pieces_are_answered_in_turn(seed):
    """Some are turned away as bytes, some, whose heads come in pieces, after they were parsed: each once, in order."""
    rng = random.Random(seed)

    async def test(one):
        host, _, port = one.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        bodies = [json.dumps([URLS[0]] * rng.randint(0, 40)).encode() for _ in range(30)]
        other = b"GET /v1/nothing HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
        followed = [rng.random() < 0.2 for _ in bodies]
        token = f"authorization: Bearer {one.token}"
        sent = b"".join(request_bytes(body, token) + other * more for body, more in zip(bodies, followed, strict=True))
        while sent:
            n = rng.choice([1, 20, 200, 2000, 20000])
            writer.write(sent[:n])
            await writer.drain()
            await asyncio.sleep(0)
            sent = sent[n:]
        expected = [status for more in followed for status in ([429, 404] if more else [429])]
        assert await answers_of(reader, len(expected)) == expected
        assert await one.store.signals() == []
        writer.close()

    with_interface(test, share=behind(ManualClock(), 0))


HEADS = [
    b"host: a.example",
    b"content-type: application/json",
    b"Connection: keep-alive",
    b"connection: close",
    b"Transfer-Encoding: chunked",
    b"expect: 100-continue",
    b"X-Content-Length: 3",
    b"Content-Length: 0",
    b"CONTENT-LENGTH:  7 ",
    b"content-length: 7",
    b"content-length : 7",
    b"upgrade: websocket",
]
LINES = [
    b"POST /v1/signals HTTP/1.1",
    b"POST /v1/signals?a=b HTTP/1.1",
    b"POST /indexnow HTTP/1.1",
    b"GET /indexnow?url=https://a.example/&key=abcdefgh HTTP/1.1",
    b"POST /websub/abc HTTP/1.1",
    b"POST /v1/signals HTTP/1.0",
    b"POST /v1/signals/ HTTP/1.1",
    b"GET /websub/abc HTTP/1.1",
    b"POST /v1/pick HTTP/1.1",
    b"post /v1/signals HTTP/1.1",
]


def test_what_is_turned_away_ends_where_a_parser_says():
    rng, turned = random.Random(5), 0
    for _ in range(8000):
        line, heads = rng.choice(LINES), rng.sample(HEADS, rng.randint(0, 4))
        data = b"\r\n".join([line, b"host: b.example", *heads, b"", b""])
        data = (data + b"POST /v1/signals HTTP/1.1\r\n\r\n")[: rng.randint(10, len(data) + 20)]
        found = turned_away(data)
        if found is None:
            continue
        turned += 1
        parser = h11.Connection(h11.SERVER)
        parser.receive_data(data)
        try:
            request = parser.next_event()
        except h11.RemoteProtocolError:
            continue  # such a request cannot be told from a good one without a parser, and is refused either way
        assert isinstance(request, h11.Request)
        assert (request.method, request.target.partition(b"?")[0]) in {
            (b"POST", b"/v1/signals"),
            (b"POST", b"/indexnow"),
            (b"GET", b"/indexnow"),
            (b"POST", b"/websub/abc"),
        }
        assert request.http_version == b"1.1"
        assert not parser.they_are_waiting_for_100_continue
        size = int(dict(request.headers).get(b"content-length", b"0"))
        body = 0
        while isinstance(event := parser.next_event(), h11.Data):
            body += len(event.data)
        head = data.index(b"\r\n\r\n") + 4
        assert found.here == head + body
        assert found.coming == size - body
        if isinstance(event, h11.EndOfMessage):
            assert parser.trailing_data[0] == data[found.here :]
            assert parser.their_state is h11.DONE  # not MUST_CLOSE
    assert turned > 300


def test_the_answer_to_a_request_that_is_turned_away_is_http():
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="GET", target="/indexnow", headers=[("host", "a.example")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(busy_answer(7))
    answer, body = parser.next_event(), parser.next_event()
    assert (answer.status_code, dict(answer.headers)[b"retry-after"]) == (429, b"7")
    assert dict(answer.headers)[b"content-type"] == b"application/problem+json"
    assert json.loads(body.data)["status"] == 429
    assert isinstance(parser.next_event(), h11.EndOfMessage)
    assert parser.their_state is h11.DONE


# --- steps and idle time ----------------------------------------------------------------------------------------------


class Steps:
    """A clock that is moved by the work itself."""

    def __init__(self):
        self.time, self.charged = 0.0, []

    async def work(self, problem=None):
        self.time += 1.0
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.time += 16.0
            raise
        self.time += 2.0
        await asyncio.sleep(0)
        self.time += 4.0
        if problem is not None:
            raise problem
        return "done"

    async def others(self):
        for _ in range(5):
            self.time += 100.0
            await asyncio.sleep(0)

    async def measured(self, **words):
        other = asyncio.create_task(self.others())
        try:
            return await stepped(self.work(**words), self.charged.append, lambda: self.time)
        finally:
            await other


def test_steps_are_charged_without_what_runs_between_them():
    steps = Steps()
    assert asyncio.run(steps.measured()) == "done"
    assert steps.charged == [1.0, 2.0, 4.0]
    failing = Steps()
    with pytest.raises(KeyError):
        asyncio.run(failing.measured(problem=KeyError("a")))
    assert failing.charged == [1.0, 2.0, 4.0]


def test_steps_can_be_cancelled():
    steps = Steps()

    async def work():
        task = asyncio.create_task(stepped_alone())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def stepped_alone():
        await stepped(steps.work(), steps.charged.append, lambda: steps.time)

    asyncio.run(work())
    assert steps.charged == [1.0, 16.0]


def test_a_measured_loop_counts_what_it_waits(monkeypatch):
    looks = iter(range(1000))
    monkeypatch.setattr(loops, "perf_counter", lambda: float(next(looks)))  # each wait takes a second

    async def work():
        idle = idle_of_loop()
        before = idle()
        for _ in range(10):
            await asyncio.sleep(0)
        busy, _ = idle() - before, await asyncio.sleep(0.001)
        return busy, idle() - before

    assert loops.run(work()) == (0.0, pytest.approx(1.0, abs=2.0))


def test_another_loop_is_not_measured():
    async def work():
        return idle_of_loop()

    assert asyncio.run(work()) is None
    assert loops.run(work()) is not None
    assert issubclass(MeasuredLoop, asyncio.SelectorEventLoop)


def test_an_interface_without_a_share_turns_nobody_away():
    assert Interface().share is None
