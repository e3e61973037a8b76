"""What every mapping of job.yaml has in common."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Part(BaseModel):
    """Strict and frozen; an unknown key is a mistake, and a key with nothing after it counts as not written."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_unwritten(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = {field.alias or name for name, field in cls.model_fields.items()}
        return {key: value for key, value in data.items() if value is not None or key not in fields}
