"""Airbyte's CDK: the conversion of records to their schema."""

import enum

_TRUE = ("y", "yes", "t", "true", "on", "1")
_FALSE = ("n", "no", "f", "false", "off", "0")
_SIMPLE = {"string": str, "number": float, "integer": int, "boolean": bool, "null": type(None)}


def _truth(text):
    lower = text.lower().strip()
    if lower not in _TRUE + _FALSE:
        raise ValueError(f"Invalid boolean value: {lower}")
    return lower in _TRUE


class TransformConfig(enum.Flag):
    NoTransform = enum.auto()
    DefaultSchemaNormalization = enum.auto()
    CustomSchemaNormalization = enum.auto()


class TypeTransformer:
    _custom_normalizer = None

    def __init__(self, config):
        if TransformConfig.NoTransform in config and config != TransformConfig.NoTransform:
            raise ValueError("NoTransform option cannot be combined with other flags.")
        self._config = config

    def registerCustomTransform(self, normalization_callback):
        if TransformConfig.CustomSchemaNormalization not in self._config:
            raise ValueError("Please set TransformConfig.CustomSchemaNormalization config before registering custom normalizer")
        self._custom_normalizer = normalization_callback
        return normalization_callback

    def _normalized(self, value, schema):
        if TransformConfig.DefaultSchemaNormalization in self._config:
            value = self.default_convert(value, schema)
        return self._custom_normalizer(value, schema) if self._custom_normalizer else value

    @staticmethod
    def default_convert(original_item, subschema):
        target = subschema.get("type", [])
        if original_item is None and "null" in target:
            return None
        if isinstance(target, list):
            target = [one for one in target if one != "null"]
            if len(target) != 1:
                return original_item
            target = target[0]
        try:
            return _converted(original_item, target, subschema)
        except (ValueError, TypeError):
            return original_item

    def transform(self, record, schema):
        if TransformConfig.NoTransform not in self._config:
            self._walk(record, schema)

    def _walk(self, value, schema):
        """Each value is converted before those in it."""
        if not isinstance(schema, dict):
            return
        properties, items = schema.get("properties"), schema.get("items")
        if isinstance(value, dict) and properties:
            for name, one in properties.items():
                if name in value:
                    value[name] = self._normalized(value[name], one)
            for name, one in properties.items():
                if name in value:
                    self._walk(value[name], one)
        if isinstance(value, list) and isinstance(items, dict):
            value[:] = [self._normalized(one, items) for one in value]
            for one in value:
                self._walk(one, items)


def _converted(value, target, schema):
    if target == "string":
        return str(value)
    if target == "number":
        return float(value)
    if target == "integer":
        return int(value)
    if target == "boolean":
        return _truth(value) if isinstance(value, str) else bool(value)
    if target == "array":
        kinds = set(schema.get("items", {}).get("type", set()))
        if kinds.issubset(_SIMPLE) and type(value) in _SIMPLE.values():
            return [value]
    return value
