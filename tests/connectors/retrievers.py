import inspect
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import Any, Dict, List, Mapping, Union

import requests

from airbyte_cdk import BearerAuthenticator, DpathExtractor, RecordSelector, SimpleRetriever
from airbyte_cdk.sources.declarative.auth.selective_authenticator import SelectiveAuthenticator
from airbyte_cdk.sources.declarative.auth.token_provider import InterpolatedStringTokenProvider
from airbyte_cdk.sources.declarative.decoders import Decoder, JsonDecoder
from airbyte_cdk.sources.declarative.extractors.http_selector import HttpSelector
from airbyte_cdk.sources.declarative.extractors.record_extractor import RecordExtractor
from airbyte_cdk.sources.declarative.interpolation import InterpolatedString
from airbyte_cdk.sources.declarative.partition_routers import SinglePartitionRouter
from airbyte_cdk.sources.declarative.partition_routers.list_partition_router import ListPartitionRouter
from airbyte_cdk.sources.declarative.requesters import HttpRequester
from airbyte_cdk.sources.declarative.requesters.error_handlers import DefaultErrorHandler
from airbyte_cdk.sources.declarative.requesters.paginators.strategies import CursorPaginationStrategy
from airbyte_cdk.sources.declarative.requesters.request_options import InterpolatedRequestOptionsProvider
from airbyte_cdk.sources.declarative.requesters.requester import Requester
from airbyte_cdk.sources.declarative.transformations import RecordTransformation
from airbyte_cdk.sources.streams.http import HttpStream
from airbyte_cdk.sources.streams.http.error_handlers.response_models import ErrorResolution, FailureType, ResponseAction
from airbyte_cdk.sources.streams.http.requests_native_auth import TokenAuthenticator
from airbyte_cdk.sources.types import StreamSlice
from airbyte_cdk.sources.utils.transform import TransformConfig, TypeTransformer


class Signal:
    """What the error handler tells the retriever."""

    restarts = False


class RestartingHandler(DefaultErrorHandler):
    def interpret_response(self, response_or_exception):
        if isinstance(response_or_exception, requests.Response) and response_or_exception.status_code == 500:
            Signal.restarts = True
            return ErrorResolution(ResponseAction.RETRY, FailureType.transient_error, "The scroll has to restart")
        return super().interpret_response(response_or_exception)


class UntilSameToken(CursorPaginationStrategy):
    def next_page_token(self, response, last_page_size, last_record, last_page_token_value=None, **_):
        token = response.json().get("scroll") if response.links["next"]["url"] == "/companies" else None
        return None if token == last_page_token_value else token


class ScrollRetriever(SimpleRetriever):
    """Restarts with the first page when the handler says so."""

    def _read_pages(self, records_generator_fn, stream_slice):
        token = None
        while True:
            response = self.requester.send_request(
                path=self._paginator_path(next_page_token=token),
                stream_state={},
                stream_slice=stream_slice,
                next_page_token=token,
                request_headers=self._request_headers(next_page_token=token),
                request_params=self._request_params(next_page_token=token),
                request_body_data=self._request_body_data(next_page_token=token),
                request_body_json=self._request_body_json(next_page_token=token),
            )
            yield from records_generator_fn(response)
            if Signal.restarts:
                Signal.restarts, token = False, None
                continue
            last = token["next_page_token"] if token else None
            token = self._paginator.next_page_token(
                response=response, last_page_size=0, last_record=None, last_page_token_value=last
            )
            if not token:
                return


class Join(HttpStream):
    http_method = "POST"
    primary_key = "id"

    def __init__(self, url, **kwargs):
        self._url = url
        super().__init__(**kwargs)

    url_base = property(lambda self: self._url)

    def path(self, **_):
        return "join"

    def parse_response(self, response, stream_slice=None, **_):
        return []

    def request_body_json(self, stream_slice=None, **_):
        return {"channel": stream_slice.get("channel")}

    def next_page_token(self, response):
        return None


class JoiningRetriever(SimpleRetriever):
    """Joins the channels that it reads."""

    def __post_init__(self, parameters: Mapping[str, Any]):
        super().__post_init__(parameters)
        self.stream_slicer = SinglePartitionRouter(parameters={})
        self.record_selector.transformations = []

    def read_records(self, records_schema, stream_slice=None):
        known = stream_slice or StreamSlice(partition={}, cursor_slice={})
        parse = partial(self._parse_records, stream_slice=known, records_schema=records_schema)
        for record in self._read_pages(parse, known):
            if not record.get("is_member"):
                join = Join(self.config["url"], authenticator=TokenAuthenticator(self.config["key"]))
                list(join.read_records(sync_mode=None, stream_slice={"channel": record["id"]}))
            yield record


@dataclass
class Associated(RecordExtractor):
    """Adds what a second retriever finds for the records."""

    field_path: List[Union[InterpolatedString, str]]
    entity: Union[InterpolatedString, str]
    associations: List[str]
    config: Mapping[str, Any]
    parameters: InitVar[Mapping[str, Any]]
    decoder: Decoder = field(default_factory=lambda: JsonDecoder(parameters={}))

    def __post_init__(self, parameters):
        entity = InterpolatedString.create(self.entity, parameters=parameters).eval(config=self.config)
        none: Mapping[str, Any] = {}
        token = InterpolatedStringTokenProvider(api_token="{{ config.key }}", config=self.config, parameters=none)
        options = InterpolatedRequestOptionsProvider(
            request_body_json={"inputs": "{{ stream_slice.extra_fields['ids'] }}"}, config=self.config, parameters=none
        )
        bearer = BearerAuthenticator(token_provider=token, config=self.config, parameters=none)
        self._retriever = SimpleRetriever(
            name="associations",
            primary_key=None,
            requester=HttpRequester(
                name="associations",
                url_base=self.config["url"],
                path=f"/associations/{entity}/" + "{{ stream_partition['of'] }}",
                http_method="POST",
                authenticator=SelectiveAuthenticator(
                    self.config, authenticators={"token": bearer}, authenticator_selection_path=["auth"]
                ),
                request_options_provider=options,
                config=self.config,
                parameters=none,
            ),
            record_selector=RecordSelector(
                extractor=DpathExtractor(field_path=["results"], config=self.config, parameters=none),
                schema_normalization=TypeTransformer(TransformConfig.NoTransform),
                record_filter=None,
                transformations=[],
                config=self.config,
                parameters=none,
            ),
            paginator=None,
            stream_slicer=ListPartitionRouter(
                values=self.associations, cursor_field="of", config=self.config, parameters=none
            ),
            config=self.config,
            parameters=none,
        )

    def extract_records(self, response):
        for body in self.decoder.decode(response):
            records = {record["id"]: record for record in body["results"]}
            for one in self._retriever.stream_slices():
                known = StreamSlice(partition=one.partition, cursor_slice={}, extra_fields={"ids": [{"id": key} for key in records]})
                for group in self._retriever.read_records({}, stream_slice=known):
                    records[group["from"]].setdefault(known["of"], []).extend(str(to) for to in group["to"])
            yield from records.values()


@dataclass
class FromEndpoint(RecordTransformation):
    requester: Requester
    record_selector: HttpSelector

    def transform(self, record: Dict[str, Any], config=None, stream_state=None, stream_slice=None):
        known = StreamSlice(partition={"parent_id": record["id"]}, cursor_slice={})
        response = self.requester.send_request(stream_slice=known)
        for found in self.record_selector.select_records(response=response, stream_state={}, records_schema={}):
            record.update(found)


class Renamed(RecordTransformation):
    def transform(self, record, config=None, stream_state=None, stream_slice=None):
        for name in list(record):
            record[f"p_{name}"] = record.pop(name)


class Trimmed(TypeTransformer):
    def __init__(self, *args, **kwargs):
        super().__init__(TransformConfig.DefaultSchemaNormalization | TransformConfig.CustomSchemaNormalization)
        self.registerCustomTransform(lambda value, schema: value.strip() if isinstance(value, str) else value)
