"""Settings that the dashboard edits, as text: rules as TOML without their secrets, and the file they are kept in."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recrawl._system.files import whole_file
from recrawl.errors import ParameterError

HIDDEN = "(hidden)"  # stands for a header or cookie that is kept as it is
_SECRET = ("headers", "cookies")
_BUDGET = re.compile(r"^budget\s*=.*$", re.MULTILINE)
_HEADER = re.compile(r"\s*\[{1,2}\s*\"?([A-Za-z0-9_-]+)", re.ASCII)
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

    Everything else stays as it is; comments among the rules do not.
    """
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    new = edited_text(text, budget, rules)
    if file.is_file():
        shutil.copy2(file, file.with_name(file.name + ".bak"))
    with whole_file(file) as path:
        path.write_text(new, encoding="utf-8")
        if not file.is_file():
            path.chmod(0o600)  # rules may hold secrets


def edited_text(text: str, budget: str | None, rules: Tables | None) -> str:
    """A file of settings with another budget or other rules, or ParameterError if it is written in an unusual way.

    >>> print(edited_text('contact = "me"\\n[[rule]]\\nmatch = "a*"\\n[[notify]]\\nname = "n"\\n', "2/s", []))
    budget = "2/s"
    contact = "me"
    <BLANKLINE>
    [[notify]]
    name = "n"
    <BLANKLINE>
    """
    head, tables = _parts(text)
    if budget is not None:
        line = f"budget = {json.dumps(budget)}"
        head = _BUDGET.sub(lambda _: line, head, count=1) if _BUDGET.search(head) else f"{line}\n{head}"
    if rules is not None:
        tables = [(name, part) for name, part in tables if name != "rule"]
        tables += [("rule", _written([rule])) for rule in rules]
    new = "\n\n".join(part.strip() for part in [head, *(part for _, part in tables)] if part.strip()) + "\n"
    wanted = tomllib.loads(text) | ({} if budget is None else {"budget": budget})
    wanted |= {} if rules is None else {"rule": [dict(rule) for rule in rules]}
    try:
        found = tomllib.loads(new)
    except tomllib.TOMLDecodeError:
        found = {}
    if {**found, "rule": found.get("rule", [])} != {**_plain(wanted), "rule": _plain(wanted.get("rule", []))}:
        raise ParameterError("the file of settings is written in a way that cannot be edited here: edit it by hand")
    return new


def _parts(text: str) -> tuple[str, list[tuple[str, str]]]:
    """What stands above the tables of a file, and its tables with their names; those inside a table are parts of it."""
    head, tables = list[str](), list[tuple[str, list[str]]]()
    for line in text.splitlines():
        found = _HEADER.match(line)
        if found is not None:
            tables.append((found[1], []))
        (tables[-1][1] if tables else head).append(line)
    return "\n".join(head), [(name, "\n".join(lines)) for name, lines in tables]


def _plain(value: Any) -> Any:
    """A value as TOML reads it back."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


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
