"""Airbyte's CDK: schema loaders."""

import abc, json
from dataclasses import InitVar, dataclass
from typing import Any, Mapping, Union

from base.files import data_file
from base.interpolation import Config, InterpolatedString


class SchemaLoader(abc.ABC):
    @abc.abstractmethod
    def get_json_schema(self):
        pass


@dataclass
class InlineSchemaLoader(SchemaLoader):
    schema: Mapping[str, Any]
    parameters: InitVar[Mapping[str, Any]]

    def get_json_schema(self):
        return self.schema


@dataclass
class JsonFileSchemaLoader(SchemaLoader):
    """A schema among the files of the connector."""

    config: Config
    parameters: InitVar[Mapping[str, Any]]
    file_path: Union[InterpolatedString, str] = ""

    def __post_init__(self, parameters):
        path = self.file_path or "schemas/{{ parameters['name'] }}.json"
        self.file_path = InterpolatedString.create(path, parameters=parameters)

    def _get_json_filepath(self):
        return self.file_path.eval(self.config)

    def get_json_schema(self):
        path = self._get_json_filepath()
        schema = json.loads(data_file(path))
        return _resolved(schema, path)


def _resolved(value, path):
    """With the schemas that it refers to, which lie in the folder `shared`."""
    if isinstance(value, list):
        return [_resolved(one, path) for one in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if not isinstance(reference, str):
        return {name: _resolved(one, path) for name, one in value.items()}
    if reference.startswith("#"):
        raise NotImplementedError(f"{path}: the reference {reference} within a schema is not supported")
    folder = path.rpartition("/")[0]
    file, _, place = reference.partition("#")
    found = json.loads(data_file(f"{folder}/shared/{file}"))
    for name in place.strip("/").split("/") if place.strip("/") else []:
        found = found[name]
    rest = {name: one for name, one in value.items() if name != "$ref"}
    return _resolved({**found, **rest}, path)
