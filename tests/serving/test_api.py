"""The endpoints under /v1: every example, every refusal."""

import asyncio
import json

import pytest

from .service import URLS, with_service
from .test_scopes import TABLE

pytestmark = pytest.mark.slow


async def sent(one, method, path, length, part, *, ends=False):
    """The first line of the answer to a request whose body is announced, of which only a part comes."""
    host, port = one.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {one.tokens['admin']}"]
    writer.write("\r\n".join([*lines, f"content-length: {length}", "", ""]).encode() + part)
    if ends:
        writer.write_eof()
    try:
        return await asyncio.wait_for(reader.readline(), 60.0)
    finally:
        writer.close()


def test_oversized_slow_and_half_sent_bodies_on_every_route(tmp_path, monkeypatch):
    """One refusal each, and nothing of the body is done."""
    monkeypatch.setattr("recrawl.serve.guard.PATIENCE", 0.05)

    async def test(one):
        taking = [e for e in one.service.endpoints() if e.body is not None]
        assert {e.method for e in taking} == {"POST", "PUT", "PATCH"}
        assert len(taking) == sum(method != "GET" for method, _ in TABLE)
        before = one.live.crawler.engine.state()["counts"], one.live.settings, one.desk.n_held
        for e in taking:
            whole = json.dumps(e.example).encode()
            assert b" 413 " in await sent(one, e.method, e.path, 1 << 40, b""), e
            assert b" 408 " in await sent(one, e.method, e.path, len(whole), whole[:-1]), e
            assert await sent(one, e.method, e.path, len(whole), whole[:-1], ends=True) in (b"",), e
        assert (one.live.crawler.engine.state()["counts"], one.live.settings, one.desk.n_held) == before
        assert len(one.live.crawler.engine) == len(URLS)
        monkeypatch.setattr("recrawl.serve.guard.PATIENCE", 30.0)
        assert (await one.call("POST", "/v1/pick", {"n": 1}))[0] == 200, "it serves on"

    with_service(test, tmp_path)


def test_the_examples_of_the_document_work(tmp_path):
    async def test(one):
        _, document = await one.call("GET", "/v1/openapi.json")
        answered, leases = {}, []
        order = sorted(document["paths"].items(), key=lambda item: item[0] != "/v1/pick")  # its leases are used
        for path, operations in order:
            for method, operation in operations.items():
                if path == "/v1/events":
                    continue
                query = {p["name"]: p["example"] for p in operation.get("parameters", []) if "example" in p}
                body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
                for given in ("outcomes", "leases"):
                    if body is not None and given in body:
                        assert len(body[given]) == 1, "each example needs one lease"
                        body = {given: [{**body[given][0], "lease": leases[0]} if given == "outcomes" else leases[0]]}
                        leases.pop(0)
                status, found = await one.call(method.upper(), path, body, params=query)
                assert status == 200, (method, path, found)
                answered[method, path] = found
                leases += [page["lease"] for page in found["pages"]] if path == "/v1/pick" else []
        assert len(answered["post", "/v1/pick"]["pages"]) == 2
        assert answered["post", "/v1/record"] == {"results": ["recorded"]}
        assert answered["post", "/v1/release"] == {"results": ["released"]}
        assert answered["post", "/v1/requests"] == {"counted": 2, "unknown": 0}
        assert answered["post", "/v1/pages"] == {"added": 0, "known": 1}
        assert answered["get", "/v1/hosts"]["total"] == 6
        assert answered["put", "/v1/budget"]["rate"] == 20.0
        assert "0 changes seen in 0 comparisons" in answered["get", "/v1/why"]["text"]

    with_service(test, tmp_path)


def test_a_crawler_by_http(tmp_path):
    async def test(one):
        seen, n = set(), 0
        while len(seen) < len(URLS):
            _, found = await one.call("POST", "/v1/pick", {"n": 7, "wait": 5.0}, scope="crawl")
            assert len({page["url"] for page in found["pages"]}) == len(found["pages"])
            seen |= {page["url"] for page in found["pages"]}
            n += len(found["pages"])
            outcomes = [{"lease": page["lease"], "status": 200, "body": page["url"]} for page in found["pages"]]
            for expected in ("recorded", "repeated"):
                status, results = await one.call("POST", "/v1/record", {"outcomes": outcomes}, scope="crawl")
                assert (status, results) == (200, {"results": [expected] * len(outcomes)})
        status, found = await one.call("GET", "/v1/status")
        assert (found["pages"], found["observations"]) == (len(URLS), n)
        cursor, listed = "", []
        while cursor is not None:
            query = {"limit": 8, **({"cursor": cursor} if cursor else {})}
            _, found = await one.call("GET", "/v1/pages", params=query)
            cursor = found["cursor"]
            listed += found["pages"]
        assert [page["url"] for page in listed] == URLS
        assert all(page["fetched_at"] for page in listed)

    with_service(test, tmp_path)


@pytest.mark.parametrize(
    ("path", "body", "status", "field", "row"),
    [
        ("/v1/pick", {"n": 0}, 422, "n", None),
        ("/v1/pick", {"n": 1, "wait": 31}, 422, "wait", None),
        ("/v1/pick", {"n": 1, "often": 1}, 422, "often", None),
        ("/v1/pages", {"pages": [{"url": URLS[0]}, {"url": "nonsense"}]}, 422, "url", 1),
        (
            "/v1/pages",
            {"pages": [{"url": "https://a.example/"}, {"url": URLS[0], "importance": -1}]},
            422,
            "importance",
            1,
        ),
        ("/v1/pages", {"pages": [{"url": "https://a.example/"}] * 10_001}, 422, "pages", None),
        ("/v1/record", {"outcomes": [{"lease": "x", "status": 200}, {"lease": "y"}]}, 422, "status", 1),
        ("/v1/record", {"outcomes": [{"lease": "x", "error": "oops"}]}, 422, "error", 0),
        ("/v1/record", {"outcomes": [{"lease": "x", "status": 200, "body": "", "body_base64": ""}]}, 422, "body", 0),
        ("/v1/release", {"leases": "x"}, 422, "leases", None),
        ("PUT /v1/budget", {"budget": "lots"}, 422, "budget", None),
        ("GET /v1/forecast?budget=lots", None, 422, "budget", None),
        ("GET /v1/pages?cursor=?", None, 422, "cursor", None),
        ("GET /v1/pages?limit=0", None, 422, "limit", None),
        ("GET /v1/why?url=nonsense", None, 422, "url", None),
        ("GET /v1/events?cursor=nonsense", None, 422, "cursor", None),
    ],
)
def test_refusals_name_field_and_row(path, body, status, field, row, tmp_path):
    async def test(one):
        method, _, rest = path.rpartition(" ")
        found, problem = await one.call(method or "POST", rest, body)
        assert (found, problem["field"], problem["row"]) == (status, field, row)
        assert len(one.live.crawler.engine) == len(URLS), "nothing is half done"

    with_service(test, tmp_path)


def test_what_is_not_known_and_what_is_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr("recrawl.serve.api.desk._MOST_WAITING", 1)

    async def test(one):
        assert (await one.call("GET", "/v1/why", params={"url": "https://never.example/"}))[0] == 404
        assert (await one.call("GET", "/v1/pages", params={"cursor": "?"}))[0] == 422
        assert (await one.call("GET", "/v1/forecast", params={"budget": "lots"}))[0] == 422
        assert (await one.call("PUT", "/v1/budget", {"budget": "lots"}))[0] == 422
        assert (await one.call("POST", "/v1/nothing", {}))[0] == 404
        for hostile in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            status, _ = await one.call("GET", "/v1/openapi.json", headers=hostile)
            assert status in (421, 403)
        await one.desk.remove(URLS)
        waiting = asyncio.create_task(one.call("POST", "/v1/pick", {"wait": 30.0}))
        while not one.desk.waiting:
            await asyncio.sleep(0.01)
        headers = {"authorization": f"Bearer {one.tokens['admin']}"}
        async with one.client.post(one.url + "/v1/pick", json={}, headers=headers) as answer:
            assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        await one.call("POST", "/v1/pages", {"pages": [{"url": "https://new.example/"}]})
        assert (await waiting)[1]["pages"][0]["url"] == "https://new.example/"

    with_service(test, tmp_path)


def test_events_are_streamed_from_a_cursor_on(tmp_path):
    async def test(one):
        headers = {"authorization": f"Bearer {one.tokens['read']}"}
        _, found = await one.call("POST", "/v1/pick", {"n": 3})
        body = {"outcomes": [{"lease": page["lease"], "status": 200, "digest": "a"} for page in found["pages"]]}
        await one.call("POST", "/v1/record", body)
        first = await read_events(one, {**headers, "last-event-id": "start"}, 3)
        assert {event["url"] for _, event in first} == {page["url"] for page in found["pages"]}
        assert await read_events(one, {**headers, "last-event-id": first[0][0]}, 2) == first[1:]
        async with one.client.get(one.url + "/v1/events?cursor=nonsense", headers=headers) as answer:
            assert answer.status == 422

    async def read_events(one, headers, n):
        found, cursor = [], None
        async with one.client.get(one.url + "/v1/events", headers=headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            while len(found) < n:
                line = (await answer.content.readline()).decode().rstrip()
                cursor = line.removeprefix("id: ") if line.startswith("id: ") else cursor
                if line.startswith("data: "):
                    found.append((cursor, json.loads(line.removeprefix("data: "))))
        return found

    with_service(test, tmp_path)
