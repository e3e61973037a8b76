"""The JSON Schema of job.yaml: completion and checks in editors, from the model's own words."""

from __future__ import annotations

import json
from typing import Any

from phalanx.job.model import Job
from phalanx.names import KNOWN_TYPES

_ROLES = {
    "chief": "Trains, saves and decides when the job is done; at most one. Without it worker 0 does.",
    "worker": "Train. With one ps or more they are driven by the chief.",
    "ps": "Parameter servers: hold the variables for ParameterServerStrategy.",
    "evaluator": "Scores checkpoints beside the cluster; at most one.",
}

_NULL = {"type": "null"}


def schema() -> dict[str, Any]:
    """Draft 2020-12. Descriptions say unit, default and why."""
    made = Job.model_json_schema(by_alias=True, mode="validation")
    roles = made["properties"]["roles"]
    role = roles.pop("additionalProperties", None) or {"$ref": "#/$defs/Role"}
    names = roles.pop("propertyNames", {})
    roles["properties"] = {kind: {**role, "description": _ROLES[kind]} for kind in KNOWN_TYPES}
    roles["patternProperties"] = {names.get("pattern", "^[a-z][a-z0-9_-]*$"): role}
    roles["propertyNames"] = {"maxLength": names.get("maxLength", 40)}
    for part in (made, *made["$defs"].values()):
        _loosen(part)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "phalanx job",
        **{key: _without_titles(value) for key, value in made.items() if key != "title"},
    }


def text() -> str:
    """The schema as a file, with a newline at its end."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _loosen(part: dict[str, Any]) -> None:
    """As the loader has it: a key without a value counts as unwritten; a key that fits no pattern is a mistake."""
    for name, field in part.get("properties", {}).items():
        if "patternProperties" in field:
            field["additionalProperties"] = False
        if name in part.get("required", ()):
            continue
        if "anyOf" in field:
            field["anyOf"] = [*(kind for kind in field["anyOf"] if kind != _NULL), _NULL]
        elif "type" in field:
            field["type"] = [field["type"], "null"]
        else:
            field["anyOf"] = [{"$ref": field.pop("$ref")}, _NULL]
        if "enum" in field:
            field["enum"] = [*field["enum"], None]


def _without_titles(value: Any) -> Any:
    """Each field comes titled by its own name; editors would show that instead of the description."""
    if isinstance(value, dict):
        return {
            key: _without_titles(item) for key, item in value.items() if not (key == "title" and isinstance(item, str))
        }
    return [_without_titles(item) for item in value] if isinstance(value, list) else value
