"""Wire: the messages and calls of the URL Frontier API, version 2.6, built from a table when they are imported.

Each message is a line of fields ``name=number type``. ``map`` is the map of metadata or counts, ``?`` marks an optional
field, ``*`` a repeated one, and a name before ``|`` the group of which at most one field is set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE, SERVICE = "urlfrontier", "urlfrontier.URLFrontier"
_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _FIELD.TYPE_STRING,
    "uint32": _FIELD.TYPE_UINT32,
    "uint64": _FIELD.TYPE_UINT64,
    "bool": _FIELD.TYPE_BOOL,
}
_ENUMS = {
    "AckMessage.Status": ("OK", "SKIPPED", "FAIL"),
    "LogLevelParams.Level": ("TRACE", "DEBUG", "INFO", "WARN", "ERROR"),
}
_MAPS = {"metadata": "StringList", "counts": "uint64"}  # values of the two maps; their keys are strings

_MESSAGES = {
    "Empty": "",
    "AnyCrawlID": "",
    "Local": "local=1 bool",
    "Active": "state=1 bool, local=2 bool",
    "Boolean": "state=1 bool",
    "Long": "value=1 uint64",
    "StringList": "values=1 *string",
    "DeleteCrawlMessage": "value=1 string, local=2 bool",
    "Pagination": "start=1 uint32, size=2 uint32, include_inactive=3 bool, crawlID=4 string, local=5 bool",
    "QueueList": "values=1 *string, total=2 uint64, start=3 uint32, size=4 uint32, crawlID=5 string",
    "QueueWithinCrawlParams": "key=1 string, crawlID=2 string, local=3 bool",
    "QueueDelayParams": "key=1 string, delay_requestable=2 uint32, crawlID=3 string, local=4 bool",
    "BlockQueueParams": "key=1 string, time=2 uint64, crawlID=3 string, local=4 bool",
    "CrawlLimitParams": "key=1 string, limit=2 uint32, crawlID=3 string, local=4 bool",
    "GetParams": "max_urls_per_queue=1 uint32, max_queues=2 uint32, key=3 string, delay_requestable=4 uint32,"
    " item|anyCrawlID=5 AnyCrawlID, item|crawlID=6 string",
    "URLInfo": "url=1 string, key=2 string, metadata=3 map, crawlID=4 string",
    "KnownURLItem": "info=1 URLInfo, refetchable_from_date=2 uint64",
    "DiscoveredURLItem": "info=1 URLInfo",
    "URLItem": "item|discovered=1 DiscoveredURLItem, item|known=2 KnownURLItem, ID=3 string, creation_date=4 uint64",
    "AckMessage": "ID=1 string, status=2 AckMessage.Status",
    "DiscoveredBatch": "ID=1 string, items=2 *URLInfo",
    "BatchAck": "ID=1 string, statuses=2 *AckMessage.Status",
    "Stats": "size=1 uint64, inProcess=2 uint32, counts=3 map, numberOfQueues=4 uint64, crawlID=5 string",
    "LogLevelParams": "package=1 string, level=2 LogLevelParams.Level, local=3 bool",
    "URLStatusRequest": "url=1 string, key=2 string, crawlID=3 string",
    "ListUrlParams": "start=1 uint32, size=2 uint32, key=3 string, crawlID=4 string, local=5 bool,"
    " filter=6 ?string, ignoreCase=7 ?bool",
    "CountUrlParams": "key=1 string, crawlID=2 string, filter=3 ?string, ignoreCase=4 ?bool, local=5 ?bool",
    "PurgeUrlParams": "key=1 string, crawlID=2 string, days=3 uint32",
}


class Call(NamedTuple):
    """A call of the service: what goes in and what comes out; ``~`` before a message: a stream of them."""

    takes: str
    gives: str

    @property
    def streams(self) -> tuple[bool, bool]:
        """Whether it takes a stream, and whether it gives one."""
        return self.takes.startswith("~"), self.gives.startswith("~")


CALLS = {
    "ListNodes": Call("Empty", "StringList"),
    "ListCrawls": Call("Local", "StringList"),
    "DeleteCrawl": Call("DeleteCrawlMessage", "Long"),
    "ListQueues": Call("Pagination", "QueueList"),
    "GetURLs": Call("GetParams", "~URLInfo"),
    "PutURLs": Call("~URLItem", "~AckMessage"),
    "PutDiscovered": Call("~DiscoveredBatch", "~BatchAck"),
    "GetStats": Call("QueueWithinCrawlParams", "Stats"),
    "DeleteQueue": Call("QueueWithinCrawlParams", "Long"),
    "BlockQueueUntil": Call("BlockQueueParams", "Empty"),
    "SetActive": Call("Active", "Empty"),
    "GetActive": Call("Local", "Boolean"),
    "SetDelay": Call("QueueDelayParams", "Empty"),
    "SetLogLevel": Call("LogLevelParams", "Empty"),
    "SetCrawlLimit": Call("CrawlLimitParams", "Empty"),
    "GetURLStatus": Call("URLStatusRequest", "URLItem"),
    "ListURLs": Call("ListUrlParams", "~URLItem"),
    "CountURLs": Call("CountUrlParams", "Long"),
    "PurgeURLs": Call("PurgeUrlParams", "Long"),
}


def _add_field(message: Any, text: str) -> None:
    """Add a field such as ``item|known=2 KnownURLItem`` to the description of a message."""
    named, kind = text.split()
    name, number = named.split("=")
    group, _, name = name.rpartition("|")
    field = message.field.add(name=name, number=int(number), label=_FIELD.LABEL_OPTIONAL)
    if kind.startswith("*"):
        field.label = _FIELD.LABEL_REPEATED
    if kind.startswith("?"):
        field.proto3_optional = True
        group = f"_{name}"
    if kind == "map":
        field.label = _FIELD.LABEL_REPEATED
        kind = f"{message.name}.{name.capitalize()}Entry"
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key=1 string")
        _add_field(entry, f"value=2 {_MAPS[name]}")
    _set_type(field, kind.lstrip("*?"))
    if group:
        groups = [one.name for one in message.oneof_decl]
        if group not in groups:
            message.oneof_decl.add(name=group)
            groups.append(group)
        field.oneof_index = groups.index(group)


def _set_type(field: Any, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _FIELD.TYPE_ENUM if kind in _ENUMS else _FIELD.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"


def _fields(text: str) -> Iterator[str]:
    yield from (part.strip() for part in text.split(",") if part.strip())


def _described() -> Any:
    """The description of the whole file."""
    file = descriptor_pb2.FileDescriptorProto(name="recrawl/urlfrontier.proto", package=PACKAGE, syntax="proto3")
    for name, text in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in sorted(_fields(text), key=lambda one: "?" in one):  # groups of optional fields come last
            _add_field(message, field)
        for enum, values in _ENUMS.items():
            if enum.startswith(f"{name}."):
                described = message.enum_type.add(name=enum.partition(".")[2])
                for number, value in enumerate(values):
                    described.value.add(name=value, number=number)
    service = file.service.add(name=SERVICE.rpartition(".")[2])
    for name, (takes, gives) in CALLS.items():
        service.method.add(
            name=name,
            input_type=f".{PACKAGE}.{takes.lstrip('~')}",
            output_type=f".{PACKAGE}.{gives.lstrip('~')}",
            client_streaming=takes.startswith("~"),
            server_streaming=gives.startswith("~"),
        )
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_described())


def message(name: str) -> Any:
    """The class of a message."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name.lstrip('~')}"))


Empty, Local, Active, Boolean, Long = map(message, ("Empty", "Local", "Active", "Boolean", "Long"))
AnyCrawlID, StringList, QueueList, Stats = map(message, ("AnyCrawlID", "StringList", "QueueList", "Stats"))
URLInfo, URLItem, AckMessage, BatchAck = map(message, ("URLInfo", "URLItem", "AckMessage", "BatchAck"))
DiscoveredBatch = message("DiscoveredBatch")
OK, SKIPPED, FAIL = range(3)  # states of an acknowledgement
