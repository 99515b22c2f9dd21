"""Airbyte's CDK: retrievers. Those of a stream read by the service; others use requesters and selectors in Python."""

import abc, inspect, logging, urllib.parse
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import Any, List, Mapping, Optional, Union

from base.auth import AbstractHeaderAuthenticator, DeclarativeAuthenticator
from base.host import ask
from base.interpolation import Config, InterpolatedString, StreamSlice
from base.models import AirbyteMessage
from base.normalization import TransformConfig, TypeTransformer
from base.requesters import HttpClient
from base.streams import StreamSlicer
from base.web import Response

StreamData = Union[Mapping[str, Any], AirbyteMessage]


class Requester(abc.ABC):
    """Annotates requesters of the manifest, by which the service sends."""


class HttpSelector(abc.ABC):
    """Annotates record selectors."""


class DeclaredRequester(Requester):
    """A requester of the manifest in a component: the service builds, signs, sends and retries its requests."""

    def __init__(self, component):
        self._component = component

    def send_request(self, stream_state=None, stream_slice=None, next_page_token=None, **more):
        if any(more.values()):
            raise NotImplementedError(f"a requester in a component with {', '.join(name for name in more if more[name])}")
        known = stream_slice or StreamSlice(partition={}, cursor_slice={})
        scope = {"partition": known.partition, "cursor_slice": known.cursor_slice, "extra_fields": known.extra_fields}
        seen = ask("declared", self._component, scope, next_page_token)
        return None if seen is None else Response(seen)


@dataclass
class RecordSelector(HttpSelector):
    extractor: Any
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    schema_normalization: Any = None
    name: str = ""
    record_filter: Any = None
    transformations: List[Any] = field(default_factory=list)
    transform_before_filtering: bool = False

    def __post_init__(self, parameters):
        self._parameters = parameters

    def select_records(self, response, stream_state=None, records_schema=None, stream_slice=None, next_page_token=None):
        records = self.extractor.extract_records(response)
        scope = {"stream_state": stream_state or {}, "stream_slice": stream_slice}
        for record in self._transformed(self._filtered(records, scope, next_page_token), scope):
            if isinstance(self.schema_normalization, TypeTransformer):
                self.schema_normalization.transform(record, records_schema or {})
            yield record

    def _filtered(self, records, scope, next_page_token):
        if self.record_filter is None:
            return records
        return self.record_filter.filter_records(records, next_page_token=next_page_token, **scope)

    def _transformed(self, records, scope):
        for record in records:
            for one in self.transformations or []:
                one.transform(record, config=self.config, **scope)
            yield record


class _NoPaginator:
    get_initial_token = lambda self: None
    next_page_token = lambda self, *_, **__: None
    reset = lambda self: None


class ServicePaginator:
    """The paginator of a stream, which the service has."""

    def __init__(self):
        self.initial = None

    def get_initial_token(self):
        return self.initial

    def next_page_token(self, response, last_page_size, last_record, last_page_token_value=None):
        token = ask("next_page", response.seen["number"], last_page_size, last_record, last_page_token_value)
        return None if token is None else {"next_page_token": token}

    def reset(self):
        """It has no variables."""


class ServiceRequester(Requester):
    """The requester of a stream, which the service has."""

    def send_request(self, stream_state=None, stream_slice=None, next_page_token=None, log_formatter=None, **more):
        if any(more.values()):
            raise NotImplementedError("a retriever that changes requests of its requester")
        seen = ask("page", None if next_page_token is None else next_page_token["next_page_token"])
        return None if seen is None else Response(seen)


class ServiceSelector(HttpSelector):
    """The record selector of a stream, which the service has. `transformations` can be emptied."""

    transformations = None

    def select_records(self, response, stream_state=None, records_schema=None, stream_slice=None, next_page_token=None):
        if self.transformations:
            raise NotImplementedError("a retriever that sets transformations")
        yield from ask("records", response.seen["number"], self.transformations is None)


@dataclass
class SimpleRetriever:
    requester: Any
    record_selector: Any
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    name: str = ""
    primary_key: Any = None
    paginator: Any = None
    stream_slicer: Any = None
    request_option_provider: Any = None
    cursor: Any = None
    ignore_stream_slicer_parameters_on_paginated_requests: bool = False

    def __post_init__(self, parameters):
        self._parameters, self._name = parameters, self.name
        self._paginator = self.paginator or _NoPaginator()
        self.state = {}

    logger = property(lambda self: logging.getLogger("airbyte"))

    def stream_slices(self):
        return self.stream_slicer.stream_slices() if self.stream_slicer else [StreamSlice(partition={}, cursor_slice={})]

    def _paginator_path(self, next_page_token=None, stream_state=None, stream_slice=None):
        return None

    _request_headers = _request_params = _request_body_data = _request_body_json = lambda self, *_, **__: {}

    def _parse_response(self, response, stream_state=None, records_schema=None, stream_slice=None, next_page_token=None):
        if not response:
            return
        yield from self.record_selector.select_records(
            response=response, stream_state=stream_state or {}, records_schema=records_schema, stream_slice=stream_slice,
            next_page_token=next_page_token,
        )

    def _parse_records(self, response, stream_state=None, records_schema=None, stream_slice=None):
        yield from _called(
            self._parse_response, response, stream_state=stream_state, records_schema=records_schema, stream_slice=stream_slice
        )

    def _get_initial_next_page_token(self):
        initial = self._paginator.get_initial_token()
        return None if initial is None else {"next_page_token": initial}

    def _next_page_token(self, response, last_page_size, last_record, last_page_token_value):
        return self._paginator.next_page_token(
            response=response, last_page_size=last_page_size, last_record=last_record,
            last_page_token_value=last_page_token_value,
        )

    def _fetch_next_page(self, stream_state=None, stream_slice=None, next_page_token=None):
        return self.requester.send_request(
            stream_state=stream_state, stream_slice=stream_slice, next_page_token=next_page_token
        )

    def _read_pages(self, records_generator_fn, stream_state=None, stream_slice=None):
        token = self._get_initial_next_page_token()
        while True:
            response = _called(
                self._fetch_next_page, stream_state=stream_state, stream_slice=stream_slice, next_page_token=token
            )
            size, last = 0, None
            for record in records_generator_fn(response):
                size, last = size + 1, record
                yield record
            if not response:
                return
            token = self._next_page_token(
                response=response, last_page_size=size, last_record=last,
                last_page_token_value=token["next_page_token"] if token else None,
            )
            if not token:
                return

    def read_records(self, records_schema, stream_slice=None):
        known = stream_slice or StreamSlice(partition={}, cursor_slice={})
        parse = partial(_called, self._parse_records, stream_state=self.state, stream_slice=known, records_schema=records_schema)
        # The state is no argument of it in newer versions of the CDK.
        has_state = "stream_state" in inspect.signature(self._read_pages).parameters
        yield from self._read_pages(parse, self.state, known) if has_state else self._read_pages(parse, known)

    def _extract_record(self, stream_data, stream_slice):
        return stream_data if isinstance(stream_data, Mapping) else None

    def _get_most_recent_record(self, current_most_recent, current_record, stream_slice):
        """None: the service has the cursor."""


def _called(method, *args, **scope):
    """With those of the arguments that the method takes: versions of the CDK differ."""
    accepted = inspect.signature(method).parameters
    if any(one.kind is one.VAR_KEYWORD for one in accepted.values()):
        return method(*args, **scope)
    return method(*args, **{name: value for name, value in scope.items() if name in accepted})


@dataclass
class SinglePartitionRouter(StreamSlicer):
    parameters: InitVar[Mapping[str, Any]]

    def stream_slices(self):
        yield StreamSlice(partition={}, cursor_slice={})


@dataclass
class ListPartitionRouter(StreamSlicer):
    values: Union[str, List[str]]
    cursor_field: Union[InterpolatedString, str]
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    request_option: Any = None

    def __post_init__(self, parameters):
        if self.request_option:
            raise NotImplementedError("a request_option of a ListPartitionRouter in Python")
        if isinstance(self.values, str):
            self.values = InterpolatedString.create(self.values, parameters=parameters).eval(self.config)
        self._cursor_field = InterpolatedString.create(self.cursor_field, parameters=parameters)

    def stream_slices(self):
        name = self._cursor_field.eval(self.config)
        return [StreamSlice(partition={name: str(one)}, cursor_slice={}) for one in self.values]


class TokenProvider(abc.ABC):
    @abc.abstractmethod
    def get_token(self):
        pass


@dataclass
class InterpolatedStringTokenProvider(TokenProvider):
    config: Config
    api_token: Union[InterpolatedString, str]
    parameters: Mapping[str, Any]

    def __post_init__(self):
        self._token = InterpolatedString.create(self.api_token, parameters=self.parameters)

    def get_token(self):
        return str(self._token.eval(self.config))


@dataclass
class SelectiveAuthenticator(DeclarativeAuthenticator):
    config: Config
    authenticators: Mapping[str, DeclarativeAuthenticator]
    authenticator_selection_path: List[str]

    def __new__(cls, config, authenticators, authenticator_selection_path, *_, **__):
        name = config
        for part in authenticator_selection_path:
            if part not in name:
                raise ValueError("The path from `authenticator_selection_path` is not found in the config.")
            name = name[part]
        if name not in authenticators:
            raise ValueError(f"The authenticator `{name}` is not found.")
        return authenticators[name]


class TokenAuthenticator(AbstractHeaderAuthenticator):
    def __init__(self, token, auth_method="Bearer", auth_header="Authorization"):
        self._token, self._method, self._header = token, auth_method, auth_header

    auth_header = property(lambda self: self._header)
    token = property(lambda self: f"{self._method} {self._token}")


class HttpStream(abc.ABC):
    """A stream in Python, which components read for its requests."""

    http_method = "GET"

    def __init__(self, authenticator=None, api_budget=None):
        self._http_client = HttpClient(name=type(self).__name__, authenticator=authenticator)

    logger = property(lambda self: logging.getLogger(f"airbyte.streams.{type(self).__name__}"))
    request_params = request_headers = lambda self, **_: {}
    request_body_data = request_body_json = lambda self, **_: None

    def read_records(self, sync_mode=None, cursor_field=None, stream_slice=None, stream_state=None):
        token = None
        while True:
            scope = {"stream_state": stream_state, "stream_slice": stream_slice, "next_page_token": token}
            _, response = self._http_client.send_request(
                http_method=self.http_method,
                url=urllib.parse.urljoin(self.url_base, self.path(**scope)),
                headers=self.request_headers(**scope),
                params=self.request_params(**scope),
                json=self.request_body_json(**scope),
                data=self.request_body_data(**scope),
                dedupe_query_params=True,
            )
            if response is None:
                return
            yield from self.parse_response(response, **scope)
            token = self.next_page_token(response)
            if not token:
                return
