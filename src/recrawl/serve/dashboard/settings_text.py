"""Settings that the dashboard edits, as text: rules as TOML without their secrets, and the file they are kept in."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recrawl._files import whole_file
from recrawl.errors import ParameterError

HIDDEN = "(hidden)"  # stands for a header or cookie that is kept as it is
_SECRET = ("headers", "cookies")
_BUDGET = re.compile(r"^budget\s*=.*$", re.MULTILINE)
_FIRST_RULE = re.compile(r"^\s*(?:\[\[\s*rule\s*\]\]|rule\s*=)", re.MULTILINE)
_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)

Tables = Sequence[Mapping[str, Any]]


def rules_text(rules: Tables) -> str:
    """Rules as TOML; values of headers and cookies are hidden.

    >>> print(rules_text([{"match": "https://a.example/*", "importance": 5, "headers": {"X-Key": "secret"}}]))
    [[rule]]
    match = "https://a.example/*"
    importance = 5
    headers = { X-Key = "(hidden)" }
    <BLANKLINE>
    """
    hidden = [
        {k: dict.fromkeys(value, HIDDEN) if k in _SECRET else value for k, value in table.items()} for table in rules
    ]
    return _written(hidden)


def parse_rules(text: str, before: Tables) -> tuple[Mapping[str, Any], ...]:
    """The rules of a text; hidden values are those of the rule for the same pattern before."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ParameterError(f"rules: {problem}") from None
    rules = found.pop("rule", [])
    if found or not isinstance(rules, list) or not all(isinstance(one, dict) for one in rules):
        raise ParameterError("rules: only [[rule]] tables are written here")
    return tuple(_revealed(one, before) for one in rules)


def _revealed(rule: dict[str, Any], before: Tables) -> dict[str, Any]:
    for name in _SECRET:
        given = rule.get(name)
        if not isinstance(given, dict) or HIDDEN not in given.values():
            continue
        old: Mapping[str, str] = next(
            (one.get(name, {}) for one in before if one.get("match") == rule.get("match")), {}
        )
        for key, value in given.items():
            if value == HIDDEN and key not in old:
                raise ParameterError(f"rules: {name} {key} is hidden, and the pattern {rule.get('match')!r} had none")
        rule = {**rule, name: {key: old[key] if value == HIDDEN else value for key, value in given.items()}}
    return rule


def write_settings(file: Path, budget: str | None, rules: Tables | None) -> None:
    """Write another budget or other rules into a file of settings; the earlier file stays beside it, with .bak.

    Everything above the rules stays as it is; comments among the rules do not.
    """
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    first = _FIRST_RULE.search(text)
    head, tail = (text, "") if first is None else (text[: first.start()], text[first.start() :])
    if budget is not None:
        line = f"budget = {json.dumps(budget)}"
        head = _BUDGET.sub(lambda _: line, head, count=1) if _BUDGET.search(head) else f"{line}\n{head}"
    if rules is not None:
        tail = "\n" + _written(rules)
    tomllib.loads(head + tail)
    if file.is_file():
        shutil.copy2(file, file.with_name(file.name + ".bak"))
    with whole_file(file) as path:
        path.write_text(f"{head.rstrip()}\n{tail}", encoding="utf-8")
        if not file.is_file():
            path.chmod(0o600)  # rules may hold secrets


def _written(rules: Tables) -> str:
    parts = ["[[rule]]\n" + "".join(f"{_key(k)} = {_value(v)}\n" for k, v in one.items()) for one in rules]
    return "\n".join(parts)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(k))} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(str(value), ensure_ascii=False)
