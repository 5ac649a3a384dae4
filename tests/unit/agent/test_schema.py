"""The shapes that providers take, and arguments held against them."""

from __future__ import annotations

from typing import Any, Literal, cast

import msgspec
import pytest

from endings import Scripted
from wellhead import ConfigError, Hits
from wellhead.agent.schema import ArgumentsError, Parameters
from wellhead.agent.search import search_tool
from wellhead.agent.tool import Tool


@pytest.fixture
def tool() -> Tool:
    return search_tool(Scripted(Hits), narrowing={"area": ["guides", "runbooks"], "year": [2024, 2025]})


def test_openai_takes_a_function_with_a_json_schema(tool: Tool) -> None:
    schema = tool.schema("openai")
    assert set(schema) == {"type", "function"}
    function = cast("dict[str, Any]", schema["function"])
    assert schema["type"] == "function"
    assert set(function) == {"name", "description", "parameters"}
    assert function["parameters"]["additionalProperties"] is False
    assert function["parameters"]["required"] == ["query"]
    assert function["parameters"]["properties"]["year"]["enum"] == [2024, 2025]


def test_anthropic_takes_an_input_schema(tool: Tool) -> None:
    schema = tool.schema("anthropic")
    assert set(schema) == {"name", "description", "input_schema"}
    assert schema["input_schema"] == tool.parameters


def test_gemini_takes_capital_types_and_choices_of_text_alone(tool: Tool) -> None:
    parameters = cast("dict[str, Any]", tool.schema("gemini")["parameters"])
    assert set(parameters) == {"type", "properties", "required"}
    assert parameters["type"] == "OBJECT"
    assert parameters["properties"]["area"]["enum"] == ["guides", "runbooks"]
    assert parameters["properties"]["area"]["type"] == "STRING"
    year = parameters["properties"]["year"]
    assert "enum" not in year
    assert (year["type"], "one of 2024, 2025" in year["description"]) == ("INTEGER", True)


def test_a_schema_is_the_callers_own_copy(tool: Tool) -> None:
    for provider in ("openai", "anthropic", "gemini"):
        schema = cast("Any", tool.schema(provider))  # type: ignore[arg-type]
        inner = schema.get("input_schema") or schema.get("parameters") or schema["function"]["parameters"]
        inner["properties"].clear()
    assert list(cast("Any", tool.parameters)["properties"]) == ["query", "area", "year"]


def test_an_unknown_provider_is_named_with_those_that_are_known(tool: Tool) -> None:
    with pytest.raises(ConfigError, match="openai, anthropic, gemini"):
        tool.schema("open-ai")  # type: ignore[arg-type]


class Place(msgspec.Struct):
    city: str
    zip: int = 0


def test_records_are_told_without_references() -> None:
    parameters = Parameters([("place", Place), ("others", list[Place], msgspec.field(default_factory=list))])
    assert "$ref" not in repr(parameters.schema)
    assert parameters.read({"place": {"city": "Ghent"}})["place"] == Place(city="Ghent")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"count": "3"},
        {"count": 3.5},
        {"count": True},
        {"count": 3, "other": 1},
        {"count": 3, "mode": "slow"},
        {"count": None},
        [],
        "count=3",
        None,
    ],
)
def test_arguments_that_do_not_fit_are_told_with_what_would(given: object) -> None:
    parameters = Parameters([("count", int), ("mode", Literal["fast", "exact"], "fast")])
    with pytest.raises(ArgumentsError) as caught:
        parameters.read(given)
    assert caught.value.fix == "the tool takes count (integer), mode (one of 'exact', 'fast')"


def test_arguments_that_fit_are_read_with_the_defaults() -> None:
    parameters = Parameters([("count", int), ("mode", Literal["fast", "exact"], "fast")])
    assert parameters.read({"count": 3}) == {"count": 3, "mode": "fast"}


def test_a_long_wrong_value_is_not_repeated_at_length() -> None:
    parameters = Parameters([("mode", Literal["fast"])])
    with pytest.raises(ArgumentsError) as caught:
        parameters.read({"mode": "x" * 10_000})
    assert len(str(caught.value)) < 600
