from dataclasses import InitVar, dataclass
from typing import Any, Iterable, List, Mapping, Optional, Union

import boto3
import dpath
import requests

from airbyte_cdk.models import SyncMode
from airbyte_cdk.sources.declarative.auth.declarative_authenticator import DeclarativeAuthenticator, NoAuth
from airbyte_cdk.sources.declarative.auth.token import BasicHttpAuthenticator, BearerAuthenticator
from airbyte_cdk.sources.declarative.extractors.dpath_extractor import DpathExtractor
from airbyte_cdk.sources.declarative.extractors.record_extractor import RecordExtractor
from airbyte_cdk.sources.declarative.extractors.record_filter import RecordFilter
from airbyte_cdk.sources.declarative.interpolation import InterpolatedString
from airbyte_cdk.sources.declarative.partition_routers import SubstreamPartitionRouter
from airbyte_cdk.sources.declarative.requesters.paginators import PaginationStrategy
from airbyte_cdk.sources.declarative.transformations import AddFields, RecordTransformation
from airbyte_cdk.sources.declarative.types import Config, StreamSlice


@dataclass
class KeyedExtractor(DpathExtractor):
    """Objects by key become records that have the key."""

    key_field: Union[InterpolatedString, str] = "key"

    def __post_init__(self, parameters: Mapping[str, Any]):
        super().__post_init__(parameters)
        self._key_field = InterpolatedString.create(self.key_field, parameters=parameters)

    def extract_records(self, response: requests.Response) -> Iterable[Mapping[str, Any]]:
        for found in super().extract_records(response):
            for key, value in found.items():
                yield {self._key_field.eval(self.config): key, **value}


class PlainExtractor(RecordExtractor):
    def extract_records(self, response: requests.Response, **kwargs) -> List[Mapping[str, Any]]:
        try:
            return [{"name": name} for name in response.json()["names"]]
        except requests.exceptions.JSONDecodeError:
            return []


@dataclass
class Together(RecordExtractor):
    """The records of several extractors, side by side."""

    extractors: List[RecordExtractor]

    def extract_records(self, response: requests.Response) -> Iterable[Mapping[str, Any]]:
        for records in zip(*[one.extract_records(response) for one in self.extractors]):
            yield {name: value for record in records for name, value in record.items()}


@dataclass
class Tag(RecordTransformation):
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    prefix: str = "t"

    def __post_init__(self, parameters: Mapping[str, Any]):
        self._name = parameters.get("name")

    def transform(self, record, config=None, stream_state=None, stream_slice=None):
        record["tag"] = f"{self.prefix}-{self._name}-{config['who']}-{dict(stream_slice)}"
        return {"ignored": True}


@dataclass
class Sum(AddFields):
    def transform(self, record, config=None, stream_state=None, stream_slice=None):
        for one in self._parsed_fields:
            values = one.value.eval(config, record=record, stream_slice=stream_slice)
            dpath.new(record, one.path, sum(values))


@dataclass
class OddOnly(RecordFilter):
    def filter_records(self, records, stream_state, stream_slice=None, **kwargs):
        return [record for record in records if record["id"] % 2]


@dataclass
class Login(NoAuth):
    config: Config
    login_url: Union[InterpolatedString, str]
    _token = None

    def __post_init__(self, parameters: Mapping[str, Any]):
        self._url = InterpolatedString.create(self.login_url, parameters=parameters).eval(self.config)

    def __call__(self, request):
        if self._token is None:
            response = requests.post(self._url, json={"user": self.config["who"]}, headers={"X-Key": self.config["key"]})
            response.raise_for_status()
            self._token = response.json()["token"]
        request.headers["Authorization"] = f"Token {self._token}"
        return request


@dataclass
class Choice(DeclarativeAuthenticator):
    config: Mapping[str, Any]
    basic: BasicHttpAuthenticator
    bearer: BearerAuthenticator

    def __new__(cls, basic, bearer, config, *args, **kwargs):
        return basic if config["who"] == "basic" else bearer


@dataclass
class ParentIds(SubstreamPartitionRouter):
    def stream_slices(self) -> Iterable[StreamSlice]:
        for parent in self.parent_stream_configs:
            field = parent.partition_field.eval(self.config)
            for record in parent.stream.read_records(sync_mode=SyncMode.full_refresh):
                yield StreamSlice(partition={field: record["id"]}, cursor_slice={}, extra_fields={"n": record["id"] * 10})


@dataclass
class Countdown(PaginationStrategy):
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    page_size: Optional[int] = 2

    @property
    def initial_token(self):
        return None

    def next_page_token(self, response, last_page_size, last_record, last_page_token_value):
        left = response.json()["left"]
        return f"{last_record['id']}.{last_page_size}.{last_page_token_value}" if left else None

    def get_page_size(self):
        return self.page_size


@dataclass
class Broken(RecordTransformation):
    def transform(self, record, config=None, stream_state=None, stream_slice=None):
        return self._lookup(record)

    def _lookup(self, record):
        return record["missing"]


class Cloud(NoAuth):
    def __call__(self, request):
        return boto3.client("s3")


class Other:
    pass
