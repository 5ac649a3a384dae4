"""What a tool takes: its arguments as a type that checks them, and as the schema that each provider wants."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec

from wellhead.errors import ConfigError, UsageError
from wellhead.hints import choices

__all__ = ["Arguments", "ArgumentsError", "Field", "Parameters", "Provider", "for_provider"]

Provider: TypeAlias = Literal["openai", "anthropic", "gemini"]
Arguments: TypeAlias = Mapping[str, object]
# A name, its type, and where it may be left out the default.
Field: TypeAlias = tuple[str, Any] | tuple[str, Any, Any]

_Json: TypeAlias = dict[str, Any]

_LONGEST_WHY = 300
_NO_TEXTS = (
    msgspec.inspect.IntType,
    msgspec.inspect.FloatType,
    msgspec.inspect.BoolType,
    msgspec.inspect.NoneType,
)
# What Gemini's form of a schema has no word for.
_NOT_IN_GEMINI = frozenset({"additionalProperties", "title", "default", "$defs", "$schema"})


class ArgumentsError(UsageError):
    """A model called a tool with arguments that it does not take."""


class Parameters:
    """The parameters of one tool.

    Args:
        fields: name and type of each, with a default where it may be left out.
        descriptions: by name, for the model.
    """

    def __init__(self, fields: Sequence[Field], descriptions: Mapping[str, str] = {}) -> None:
        try:
            self._type = msgspec.defstruct("Arguments", fields, forbid_unknown_fields=True, kw_only=True)
            schema = _inlined(msgspec.json.schema(self._type))
            _check_keys(msgspec.inspect.type_info(self._type))
        except (TypeError, RecursionError) as error:
            raise ConfigError(
                "a tool's parameters must have types that JSON can hold",
                why=f"{type(error).__name__}",
                fix="annotate each parameter with str, int, float, bool, a list, a Literal or a record of those",
            ) from error
        properties = schema.get("properties", {})
        for name, part in properties.items():
            properties[name] = _told(part, descriptions.get(name, ""))
        self.schema: dict[str, object] = {
            "type": "object",
            "properties": properties,
            "required": list(schema.get("required", [])),
            "additionalProperties": False,
        }

    def read(self, given: object) -> dict[str, Any]:
        """The arguments that were given, by name; those left out have their defaults.

        Raises:
            ArgumentsError: something is missing, unknown, of another type or outside what is allowed.
        """
        if not isinstance(given, Mapping):
            raise ArgumentsError("the arguments must be one JSON object", fix=self._taken())
        try:
            read = msgspec.convert(dict(cast("Mapping[str, object]", given)), self._type)
        except msgspec.ValidationError as error:
            # Whatever of the model's own words msgspec repeats is kept short.
            raise ArgumentsError(
                "the arguments do not fit", why=str(error)[:_LONGEST_WHY], fix=self._taken()
            ) from error
        return {name: getattr(read, name) for name in read.__struct_fields__}

    def _taken(self) -> str:
        """What the tool takes, in words for whoever filled it in wrongly."""
        properties = cast("Mapping[str, Mapping[str, Any]]", self.schema["properties"])
        return f"the tool takes {', '.join(f'{name} ({_kind(part)})' for name, part in properties.items())}"


def _check_keys(kind: object) -> None:
    """Raises TypeError for a mapping with other keys than texts, at any depth: JSON's keys are texts, so none fits."""
    if isinstance(kind, (list, tuple)):
        for each in cast("Sequence[object]", kind):
            _check_keys(each)
    elif isinstance(kind, (msgspec.inspect.Type, msgspec.inspect.Field)):
        if isinstance(kind, msgspec.inspect.DictType) and not _is_text(kind.key_type):
            raise TypeError("a mapping whose keys are no texts")
        _check_keys([getattr(kind, name) for name in kind.__struct_fields__])


def _is_text(kind: msgspec.inspect.Type) -> bool:
    """Whether a JSON text can be of this type."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return all(map(_is_text, kind.types))
    if isinstance(kind, msgspec.inspect.LiteralType):
        return all(isinstance(value, str) for value in kind.values)
    if isinstance(kind, msgspec.inspect.EnumType):
        return all(isinstance(each.value, str) for each in kind.cls)
    return not isinstance(kind, _NO_TEXTS)


def _told(part: Mapping[str, Any], said: str) -> dict[str, Any]:
    """A parameter's schema with its description; a choice says its type too, which some providers want."""
    told = dict(part)
    if "enum" in told and "type" not in told:
        told = {"type": "string" if isinstance(told["enum"][0], str) else "integer", **told}
    return {**told, "description": said} if said else told


def _kind(part: Mapping[str, Any]) -> str:
    if "enum" in part:
        return f"one of {', '.join(map(repr, part['enum']))}"
    return str(part.get("type", "any"))


def for_provider(provider: str, name: str, description: str, schema: Mapping[str, object]) -> dict[str, object]:
    """A tool as one provider's function calling takes it: an entry of `tools` (Gemini: of `functionDeclarations`).

    Raises:
        ConfigError: an unknown provider.
    """
    own = copy.deepcopy(dict(schema))
    if provider == "openai":
        return {"type": "function", "function": {"name": name, "description": description, "parameters": own}}
    if provider == "anthropic":
        return {"name": name, "description": description, "input_schema": own}
    if provider == "gemini":
        return {"name": name, "description": description, "parameters": _for_gemini(own)}
    raise ConfigError(f"no tool schema for {provider!r}", fix=choices(str(provider), get_args(Provider)))


def _for_gemini(schema: _Json) -> _Json:
    """Types in capitals; a choice of numbers becomes a sentence, as an enum there holds texts alone."""
    made = {key: value for key, value in schema.items() if key not in _NOT_IN_GEMINI}
    if "properties" in made:
        made["properties"] = {name: _for_gemini(value) for name, value in made["properties"].items()}
    if isinstance(made.get("items"), dict):
        made["items"] = _for_gemini(made["items"])
    if "anyOf" in made:
        made["anyOf"] = [_for_gemini(each) for each in made["anyOf"]]
    enum: list[object] = made.get("enum") or []
    if enum and not all(isinstance(value, str) for value in enum):
        del made["enum"]
        said = f"one of {', '.join(map(str, enum))}"
        made["description"] = f"{made['description']} ({said})" if made.get("description") else said
        made.setdefault("type", "integer")
    elif enum:
        made.setdefault("type", "string")
    return {**made, "type": made["type"].upper()} if isinstance(made.get("type"), str) else made


def _inlined(schema: _Json) -> _Json:
    """The schema without references: not every provider follows them."""
    defined: dict[str, _Json] = schema.pop("$defs", {})

    def plain(part: object) -> object:
        if isinstance(part, list):
            return [plain(item) for item in cast("list[object]", part)]
        if not isinstance(part, dict):
            return part
        held = cast("_Json", part)
        if "$ref" in held:
            return plain(defined[held["$ref"].rpartition("/")[2]])
        return {key: plain(value) for key, value in held.items()}

    return cast("_Json", plain(schema))
