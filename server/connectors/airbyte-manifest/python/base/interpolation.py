"""Airbyte's CDK: slices and templates, which the service evaluates."""

import ast, collections.abc
from typing import Any, List, Mapping

from base.host import ask

Config = Mapping[str, Any]
Record = Mapping[str, Any]
StreamState = Mapping[str, Any]
FieldPointer = List[str]


class StreamSlice(collections.abc.Mapping):
    def __init__(self, *, partition, cursor_slice, extra_fields=None):
        self.partition = partition
        self.cursor_slice = cursor_slice
        self.extra_fields = extra_fields or {}
        if partition.keys() & cursor_slice.keys():
            raise ValueError("Keys for partition and incremental sync cursor should not overlap")
        self._stream_slice = dict(partition) | dict(cursor_slice)

    def __getitem__(self, key):
        return self._stream_slice[key]

    def __setitem__(self, key, value):
        raise ValueError("StreamSlice is immutable")

    def __iter__(self):
        return iter(self._stream_slice)

    def __len__(self):
        return len(self._stream_slice)

    def __repr__(self):
        return repr(self._stream_slice)

    def __bool__(self):
        return bool(self._stream_slice) or bool(self.extra_fields)


TYPE_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def _evaluate(kind, text, config, parameters, scope):
    known = scope.get("stream_slice")
    if isinstance(known, StreamSlice):
        parts = {"partition": known.partition, "cursor_slice": known.cursor_slice, "extra_fields": known.extra_fields}
        scope = {**scope, "stream_slice": None, "slice": parts}
    return ask("evaluate", kind, text, {**scope, "config": config, "parameters": parameters or {}})


def _literal(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


class InterpolatedString:
    def __init__(self, string, parameters=None, default=None):
        self.string = string
        self.default = default or string
        self._parameters = parameters

    def eval(self, config, valid_types=None, **scope):
        kind = TYPE_NAMES[valid_types[0]] if valid_types else "any"
        if kind == "any" and "{{" not in self.string and "{%" not in self.string and "{#" not in self.string:
            return _literal(self.string)
        return _evaluate(kind, self.string, config, self._parameters, scope)

    def __eq__(self, other):
        return isinstance(other, InterpolatedString) and (self.string, self.default) == (other.string, other.default)

    @classmethod
    def create(cls, string_or_interpolated, *, parameters):
        if isinstance(string_or_interpolated, str):
            return InterpolatedString(string=string_or_interpolated, parameters=parameters)
        return string_or_interpolated


class InterpolatedBoolean:
    def __init__(self, condition, parameters=None):
        self.condition = condition
        self._parameters = parameters

    def eval(self, config, **scope):
        if isinstance(self.condition, bool):
            return self.condition
        return _evaluate("truth", self.condition, config, self._parameters, scope)
