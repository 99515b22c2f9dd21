"""Airbyte's CDK: decoders, extractors, filters, transformations and pagination."""

import abc, json
from dataclasses import InitVar, dataclass, field
from typing import Any, List, Mapping, Optional, Union

from base.host import exact_number
from base.interpolation import TYPE_NAMES, Config, FieldPointer, InterpolatedBoolean, InterpolatedString
from base.paths import dpath_get, dpath_new, dpath_values
from base.web import RequestsJSONDecodeError


class Decoder:
    def __init__(self, parameters=None, **_):
        pass


class JsonDecoder(Decoder):
    def decode(self, response):
        try:
            body = response.json()
        except RequestsJSONDecodeError:
            body = {}
        yield from (body if isinstance(body, list) else [body])


class JsonlDecoder(Decoder):
    def decode(self, response):
        for line in response.iter_lines():
            yield json.loads(line, parse_float=exact_number)


class RecordExtractor(abc.ABC):
    @abc.abstractmethod
    def extract_records(self, response):
        pass


@dataclass
class DpathExtractor(RecordExtractor):
    field_path: List[Union[InterpolatedString, str]]
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    decoder: Decoder = field(default_factory=lambda: JsonDecoder())

    def __post_init__(self, parameters):
        self._field_path = [InterpolatedString.create(path, parameters=parameters) for path in self.field_path]

    def extract_records(self, response):
        for body in self.decoder.decode(response):
            if len(self._field_path) == 0:
                extracted = body
            else:
                path = [path.eval(self.config) for path in self._field_path]
                extracted = dpath_values(body, path) if "*" in path else dpath_get(body, path, default=[])
            if isinstance(extracted, list):
                yield from extracted
            elif extracted:
                yield extracted


@dataclass
class RecordFilter:
    parameters: InitVar[Mapping[str, Any]]
    config: Config
    condition: str = ""

    def __post_init__(self, parameters):
        self._filter_interpolator = InterpolatedBoolean(condition=self.condition, parameters=parameters)

    def filter_records(self, records, stream_state, stream_slice=None, next_page_token=None):
        scope = {"stream_state": stream_state, "stream_slice": stream_slice, "next_page_token": next_page_token}
        for record in records:
            if self._filter_interpolator.eval(self.config, record=record, **scope):
                yield record


class RecordTransformation(abc.ABC):
    @abc.abstractmethod
    def transform(self, record, config=None, stream_state=None, stream_slice=None):
        pass

    def __eq__(self, other):
        return other.__dict__ == self.__dict__


@dataclass(frozen=True)
class AddedFieldDefinition:
    path: FieldPointer
    value: Union[InterpolatedString, str]
    value_type: Optional[type] = None
    parameters: InitVar[Mapping[str, Any]] = None


def _value_type(name):
    return next((type for type, known in TYPE_NAMES.items() if known == name), name)


@dataclass
class AddFields(RecordTransformation):
    fields: List[AddedFieldDefinition]
    parameters: InitVar[Mapping[str, Any]]
    condition: str = ""
    _parsed_fields: list = field(init=False, repr=False, default_factory=list)

    def __post_init__(self, parameters):
        self._filter_interpolator = InterpolatedBoolean(condition=self.condition, parameters=parameters)
        for one in self.fields:
            value = InterpolatedString.create(one.value, parameters=parameters)
            self._parsed_fields.append(AddedFieldDefinition(one.path, value, _value_type(one.value_type)))

    def transform(self, record, config=None, stream_state=None, stream_slice=None):
        scope = {"record": record, "stream_slice": stream_slice}
        for one in self._parsed_fields:
            types_of_value = (one.value_type,) if one.value_type else None
            value = one.value.eval(config or {}, valid_types=types_of_value, **scope)
            if not self.condition or self._filter_interpolator.eval(config or {}, value=value, path=one.path, **scope):
                dpath_new(record, one.path, value)


class PaginationStrategy(abc.ABC):
    @property
    @abc.abstractmethod
    def initial_token(self):
        pass

    @abc.abstractmethod
    def next_page_token(self, response, last_page_size, last_record, last_page_token_value):
        pass

    @abc.abstractmethod
    def get_page_size(self):
        pass


@dataclass
class PageIncrement(PaginationStrategy):
    config: Config
    page_size: Optional[Union[str, int]]
    parameters: InitVar[Mapping[str, Any]]
    start_from_page: int = 0
    inject_on_first_request: bool = False

    def __post_init__(self, parameters):
        self._page = self.start_from_page
        self._page_size = _size_of(self.page_size, self.config, parameters)

    @property
    def initial_token(self):
        return self.start_from_page if self.inject_on_first_request else None

    def next_page_token(self, response, last_page_size, last_record, last_page_token_value):
        if (self._page_size and last_page_size < self._page_size) or last_page_size == 0:
            return None
        if last_page_token_value is None:
            return self.start_from_page + 1
        if not isinstance(last_page_token_value, int):
            raise ValueError(f"Last page token value {last_page_token_value} was not an integer")
        return last_page_token_value + 1

    def reset(self):
        self._page = self.start_from_page

    def get_page_size(self):
        return self._page_size


def _size_of(size, config, parameters):
    return int(InterpolatedString.create(size, parameters=parameters).eval(config)) if isinstance(size, str) else size


@dataclass
class CursorPaginationStrategy(PaginationStrategy):
    cursor_value: Union[InterpolatedString, str]
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    page_size: Optional[int] = None
    stop_condition: Optional[Union[InterpolatedBoolean, str]] = None
    decoder: Decoder = field(default_factory=lambda: JsonDecoder())

    def __post_init__(self, parameters):
        self._cursor_value = InterpolatedString.create(self.cursor_value, parameters=parameters)
        stop = self.stop_condition
        self._stop_condition = InterpolatedBoolean(condition=stop, parameters=parameters) if isinstance(stop, str) else stop

    initial_token = property(lambda self: None)

    def next_page_token(self, response, last_page_size, last_record, last_page_token_value=None):
        scope = {
            "response": next(self.decoder.decode(response), {}),
            "headers": {**dict(response.headers.items()), "link": response.links},
            "last_record": last_record, "last_page_size": last_page_size,
        }
        if self._stop_condition and self._stop_condition.eval(self.config, **scope):
            return None
        return self._cursor_value.eval(config=self.config, **scope) or None

    def get_page_size(self):
        return self.page_size
