"""Is this a report? Reads report files and checks documents against `report.schema.json`. jsonschema's only home.

The schema is open: a reader must ignore keys that it does not know. What a schema cannot say (a headline lane that
was measured, a figure for each k) is checked here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from retrieval_eval.errors import ReportError
from retrieval_eval.report.escape import visible

SCHEMA_VERSION = 1
HINT = "make it with: retrieval-eval run --json FILE"


def load(path: Path) -> dict[str, Any]:
    """Read and validate a report file. Raises `ReportError`: missing, not JSON, of another version, not a report."""
    where = str(path)
    try:
        document = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except OSError as error:
        raise ReportError("cannot read the report", where=where, got=error.strerror or str(error), hint=HINT) from error
    except (ValueError, RecursionError) as error:
        raise ReportError("not JSON", where=where, got=str(error), expected="a report", hint=HINT) from error
    validate(document, where)
    return dict(document)


def validate(document: object, where: str) -> None:
    """Raise `ReportError` with the JSON path of the first thing that is wrong, in document order."""
    if not isinstance(document, Mapping):
        raise ReportError("not a report", where=where, got=_got(document), expected="a JSON object", hint=HINT)
    version = document.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise ReportError(
            "schema_version",
            where=where,
            got=_got(version) if "schema_version" in document else "none",
            expected=str(SCHEMA_VERSION),
            hint="this file is no report, or was made by another version of retrieval-eval; measure again",
        )
    wrong = min(_validator().iter_errors(document), key=lambda error: [str(step) for step in error.path], default=None)
    if wrong is not None:
        raise ReportError(wrong.json_path, where=where, got=_found(wrong), expected=_expected(wrong), hint=HINT)
    for path, got, expected in _disagreements(document):
        raise ReportError(path, where=where, got=got, expected=expected, hint=HINT)


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 -- 100 ms that only readers of a report need

    schema = json.loads(files("retrieval_eval.report").joinpath("report.schema.json").read_text(encoding="utf-8"))
    return Draft202012Validator(schema)


def _disagreements(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(JSON path, got, expected) of each part that contradicts another."""
    lane, k = document["headline"]["lane"], document["headline"]["k"]
    if lane not in document["lanes"]:
        yield "$.headline.lane", _got(lane), f"one of {', '.join(document['lanes'])}"
    if k not in document["k"]:
        yield "$.headline.k", str(k), f"one of {document['k']}"
    wanted = {str(k) for k in document["k"]}
    for kind in ("lanes", "legs"):
        for name, scores in document[kind].items():
            groups = {"overall": scores["overall"]} | {f"categories.{n}": g for n, g in scores["categories"].items()}
            for at, group in groups.items():
                if set(group["recall"]) != (wanted if group["n"] else set()):
                    expected = f"the k {sorted(document['k'])}" if group["n"] else "no k, as n is 0"
                    yield f"$.{kind}.{name}.{at}.recall", f"the k {sorted(map(int, group['recall']))}", expected
    for number, question in enumerate(document["questions"]):
        if document["lanes"].keys() - question["lanes"].keys():
            got = visible(", ".join(question["lanes"]), 80) or "none"
            yield f"$.questions[{number}].lanes", got, ", ".join(document["lanes"])


def _found(wrong: Any) -> str:
    if wrong.validator == "required":
        return "keys " + visible(", ".join(wrong.instance), 80) if wrong.instance else "no keys"
    if wrong.validator == "additionalProperties":
        return f"keys {visible(', '.join(map(str, wrong.instance)), 80)}"
    return _got(wrong.instance)


def _expected(wrong: Any) -> str:
    match wrong.validator:
        case "required":
            missing = [key for key in wrong.validator_value if key not in wrong.instance]
            return f"key {missing[0]!r}"
        case "type":
            kinds = wrong.validator_value
            return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)
        case "enum":
            return f"one of {', '.join(map(str, wrong.validator_value))}"
        case "minimum" | "maximum" | "minItems" | "maxItems" | "minProperties":
            return f"{wrong.validator} {wrong.validator_value}"
    return wrong.schema.get("description") or f"{wrong.validator} {wrong.validator_value}"


def _got(value: object) -> str:
    if isinstance(value, str | int | float | bool) or value is None:
        return visible(json.dumps(value, ensure_ascii=False), 80)
    return "an object" if isinstance(value, Mapping) else "an array"


def _refuse_constant(name: str) -> float:
    message = f"{name} is no JSON number"
    raise ValueError(message)
