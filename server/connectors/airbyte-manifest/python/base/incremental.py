"""Airbyte's CDK: the options that a datetime cursor adds to requests. The service has the intervals and the state."""

from dataclasses import InitVar, dataclass, field
from typing import Any, List, Mapping, Optional, Union

from base.interpolation import Config, InterpolatedString
from base.requesters import RequestOption, RequestOptionType
from base.times import DatetimeParser


@dataclass
class DatetimeBasedCursor:
    start_datetime: Any
    cursor_field: Union[InterpolatedString, str]
    datetime_format: str
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    end_datetime: Any = None
    step: Optional[Union[InterpolatedString, str]] = None
    cursor_granularity: Optional[str] = None
    start_time_option: Optional[RequestOption] = None
    end_time_option: Optional[RequestOption] = None
    partition_field_start: Optional[str] = None
    partition_field_end: Optional[str] = None
    lookback_window: Optional[Union[InterpolatedString, str]] = None
    is_compare_strictly: Optional[bool] = False
    cursor_datetime_formats: List[str] = field(default_factory=list)

    def __post_init__(self, parameters):
        self._parser = DatetimeParser()
        template = lambda text: InterpolatedString.create(text, parameters=parameters)
        self.cursor_field = template(self.cursor_field)
        self._partition_field_start = template(self.partition_field_start or "start_time")
        self._partition_field_end = template(self.partition_field_end or "end_time")

    def get_request_params(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._get_request_options(RequestOptionType.request_parameter, stream_slice)

    def get_request_headers(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._get_request_options(RequestOptionType.header, stream_slice)

    def get_request_body_data(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._get_request_options(RequestOptionType.body_data, stream_slice)

    def get_request_body_json(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._get_request_options(RequestOptionType.body_json, stream_slice)

    def _get_request_options(self, option_type, stream_slice=None):
        options = {}
        pairs = (
            (self.start_time_option, self._partition_field_start),
            (self.end_time_option, self._partition_field_end),
        )
        for option, name in pairs if stream_slice else ():
            if option and option.inject_into == option_type:
                option.inject_into_request(options, stream_slice.get(name.eval(self.config)), self.config)
        return options
