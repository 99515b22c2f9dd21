from dataclasses import InitVar, dataclass
from typing import Any, Mapping, Optional, Union

import requests

from airbyte_cdk.models import FailureType
from airbyte_cdk.sources.declarative.incremental import DatetimeBasedCursor
from airbyte_cdk.sources.declarative.requesters import HttpRequester
from airbyte_cdk.sources.declarative.requesters.error_handlers import BackoffStrategy, DefaultErrorHandler
from airbyte_cdk.sources.declarative.requesters.paginators.strategies.page_increment import PageIncrement
from airbyte_cdk.sources.declarative.requesters.request_option import RequestOptionType
from airbyte_cdk.sources.declarative.requesters.request_options.interpolated_request_options_provider import (
    InterpolatedRequestOptionsProvider,
)
from airbyte_cdk.sources.declarative.types import Config
from airbyte_cdk.sources.streams.http.error_handlers import ErrorResolution, ResponseAction

from source_shop.shared import BUSY


@dataclass
class ShopRequester(HttpRequester):
    request_parameters: Optional[Union[str, Mapping[str, str]]] = None
    suffix: str = ""

    def __post_init__(self, parameters: Mapping[str, Any]) -> None:
        self.request_options_provider = InterpolatedRequestOptionsProvider(
            config=self.config, parameters=parameters, request_parameters=self.request_parameters
        )
        super().__post_init__(parameters)

    def get_path(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        own = {"stream_state": stream_state, "stream_slice": stream_slice, "next_page_token": next_page_token}
        return super().get_path(**own) + self.suffix

    def get_request_headers(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return {"X-Page": str((next_page_token or {}).get("next_page_token"))}

    def send_request(self, **kwargs):
        self.logger.info(f"a request, streamed: {self.stream_response}")
        kwargs["request_params"] = {**kwargs["request_params"], "stream": self.name}
        kwargs["request_params"] = {name: value for name, value in kwargs["request_params"].items() if name != "drop"}
        return super().send_request(**kwargs)


class ShopErrorHandler(DefaultErrorHandler):
    """Some successes are none."""

    def interpret_response(self, response_or_exception):
        if isinstance(response_or_exception, requests.Response) and BUSY in response_or_exception.text:
            return ErrorResolution(ResponseAction.RETRY, FailureType.transient_error, "The shop is busy")
        return super().interpret_response(response_or_exception)


@dataclass
class ShopBackoff(BackoffStrategy):
    parameters: InitVar[Mapping[str, Any]]
    config: Config

    def backoff_time(self, response_or_exception, attempt_count):
        if not isinstance(response_or_exception, requests.Response):
            return None
        return float(response_or_exception.headers["X-Wait"]) * attempt_count


@dataclass
class ShopPages(PageIncrement):
    def next_page_token(self, response, last_page_size, last_record, last_page_token_value):
        if response.json().get("last"):
            return None
        return super().next_page_token(response, last_page_size, last_record, last_page_token_value)


@dataclass
class ShopCursor(DatetimeBasedCursor):
    """Adds the number of days of a step."""

    def _get_request_options(self, option_type, stream_slice=None):
        options = dict(super()._get_request_options(option_type, stream_slice))
        if option_type == RequestOptionType.request_parameter and stream_slice:
            parse = lambda name: self._parser.parse(stream_slice[name], self.datetime_format)
            options["days"] = (parse("end_time") - parse("start_time")).days + 1
        return options
