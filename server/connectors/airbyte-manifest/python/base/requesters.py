"""Airbyte's CDK: requesters, error handlers and pauses. The service signs, sends and retries the requests of a requester."""

import abc, collections.abc, contextlib, enum, logging, re, time, urllib.parse
from dataclasses import InitVar, dataclass, field
from typing import Any, List, Mapping, Optional, Union

from base.auth import DeclarativeAuthenticator
from base.host import ask
from base.interpolation import Config, InterpolatedString
from base.models import AirbyteTracedException, FailureType
from base.web import InvalidURL, Request, RequestException, Response, Session, wire_of

RequestInput = Union[str, Mapping[str, str]]
BODY_REQUEST_METHODS = ("POST", "PUT", "PATCH")


class HttpMethod(enum.Enum):
    DELETE = "DELETE"
    GET = "GET"
    PATCH = "PATCH"
    POST = "POST"
    PUT = "PUT"


class RequestOptionType(enum.Enum):
    request_parameter = "request_parameter"
    header = "header"
    body_data = "body_data"
    body_json = "body_json"


@dataclass
class RequestOption:
    inject_into: Union[RequestOptionType, str]
    parameters: InitVar[Mapping[str, Any]]
    field_name: Optional[Union[InterpolatedString, str]] = None
    field_path: Optional[List[Union[InterpolatedString, str]]] = None

    def __post_init__(self, parameters):
        self.inject_into = RequestOptionType(self.inject_into)
        if self.field_name is not None:
            self.field_name = InterpolatedString.create(self.field_name, parameters=parameters)
        if self.field_path is not None:
            self.field_path = [InterpolatedString.create(one, parameters=parameters) for one in self.field_path]

    def inject_into_request(self, target, value, config):
        *parents, last = [one.eval(config) for one in self.field_path or [self.field_name]]
        for name in parents:
            target = target.setdefault(name, {})
        target[last] = value


class ResponseAction(enum.Enum):
    SUCCESS = "SUCCESS"
    RETRY = "RETRY"
    FAIL = "FAIL"
    IGNORE = "IGNORE"
    RATE_LIMITED = "RATE_LIMITED"
    REFRESH_TOKEN_THEN_RETRY = "REFRESH_TOKEN_THEN_RETRY"


@dataclass
class ErrorResolution:
    response_action: Optional[ResponseAction] = None
    failure_type: Optional[FailureType] = None
    error_message: Optional[str] = None


SUCCESS_RESOLUTION = ErrorResolution(ResponseAction.SUCCESS)


def create_fallback_error_resolution(response_or_exception):
    if isinstance(response_or_exception, Exception):
        message = f"{type(response_or_exception).__name__}: {response_or_exception}"
    else:
        message = f"Unexpected response with HTTP status {getattr(response_or_exception, 'status_code', None)}"
    return ErrorResolution(ResponseAction.RETRY, FailureType.system_error, message)


def _mapping():
    fail = lambda kind, text: ErrorResolution(ResponseAction.FAIL, kind, text)
    retry = lambda text: ErrorResolution(ResponseAction.RETRY, FailureType.transient_error, text)
    status = lambda code, text: f"HTTP Status Code: {code}. Error: {text}"
    system, config = FailureType.system_error, FailureType.config_error
    return {
        InvalidURL: retry("Invalid URL specified or DNS error occurred"),
        RequestException: retry("An exception occurred when making the request"),
        400: fail(system, status(400, "Bad request. Please check your request parameters.")),
        401: fail(config, status(401, "Unauthorized. Please ensure you are authenticated correctly.")),
        403: fail(config, status(403, "Forbidden. You don't have permission to access this resource.")),
        404: fail(system, status(404, "Not found. The requested resource was not found on the server.")),
        405: fail(system, status(405, "Method not allowed. Please check your request method.")),
        408: retry(status(408, "Request timeout.")),
        429: ErrorResolution(ResponseAction.RATE_LIMITED, FailureType.transient_error, status(429, "Too many requests.")),
        500: retry(status(500, "Internal server error.")),
        502: retry(status(502, "Bad gateway.")),
        503: retry(status(503, "Service unavailable.")),
        504: retry(status(504, "Gateway timeout.")),
    }


DEFAULT_ERROR_MAPPING = _mapping()
CONSTANTS = {
    "BODY_REQUEST_METHODS": BODY_REQUEST_METHODS, "SUCCESS_RESOLUTION": SUCCESS_RESOLUTION, "RequestInput": RequestInput,
    "DEFAULT_ERROR_MAPPING": DEFAULT_ERROR_MAPPING,
}


class UserDefinedBackoffException(RequestException):
    pass


class RequestBodyException(Exception):
    pass


# --- pauses


class BackoffStrategy(abc.ABC):
    @abc.abstractmethod
    def backoff_time(self, response_or_exception, attempt_count):
        pass


def _number(value, config, parameters):
    return float(InterpolatedString.create(str(value), parameters=parameters).eval(config))


@dataclass
class ConstantBackoffStrategy(BackoffStrategy):
    backoff_time_in_seconds: Union[float, InterpolatedString, str]
    parameters: InitVar[Mapping[str, Any]]
    config: Config

    def __post_init__(self, parameters):
        self._seconds = _number(self.backoff_time_in_seconds, self.config, parameters)

    def backoff_time(self, response_or_exception, attempt_count):
        return self._seconds


@dataclass
class ExponentialBackoffStrategy(BackoffStrategy):
    parameters: InitVar[Mapping[str, Any]]
    config: Config
    factor: Union[float, InterpolatedString, str] = 5

    def __post_init__(self, parameters):
        self._factor = _number(self.factor, self.config, parameters)

    def backoff_time(self, response_or_exception, attempt_count):
        return self._factor * 2**attempt_count


@dataclass
class WaitTimeFromHeaderBackoffStrategy(BackoffStrategy):
    header: Union[InterpolatedString, str]
    parameters: InitVar[Mapping[str, Any]]
    config: Config
    regex: Optional[str] = None
    max_waiting_time_in_seconds: Optional[float] = None

    def __post_init__(self, parameters):
        self._header = InterpolatedString.create(self.header, parameters=parameters)

    def backoff_time(self, response_or_exception, attempt_count):
        if not isinstance(response_or_exception, Response):
            return None
        text = response_or_exception.headers.get(self._header.eval(self.config))
        if text and self.regex:
            found = re.search(self.regex, text)
            text = found and (found.group(1) if found.groups() else found.group())
        try:
            seconds = float(text)
        except (TypeError, ValueError):
            return None
        if self.max_waiting_time_in_seconds and seconds >= self.max_waiting_time_in_seconds:
            message = f"Rate limit wait time {seconds} is greater than max waiting time of {self.max_waiting_time_in_seconds} seconds."
            raise AirbyteTracedException(message, message, FailureType.transient_error)
        return seconds


# --- error handlers


class ErrorHandler(abc.ABC):
    max_retries = 5
    max_time = 600

    @abc.abstractmethod
    def interpret_response(self, response_or_exception):
        pass


def resolution_of(known):
    failure = known["failure"] and FailureType(known["failure"])
    return ErrorResolution(ResponseAction(known["action"]), failure, known["message"])


class HttpResponseFilter:
    """A filter of the manifest, which the service applies."""

    def __init__(self, config=None, parameters=None, **fields):
        self._component = {"type": "HttpResponseFilter", **fields}

    def matches(self, response_or_exception):
        if not isinstance(response_or_exception, Response):
            return None
        known = ask("match", self._component, response_or_exception.seen)
        return known and resolution_of(known)


class DefaultHttpResponseFilter(HttpResponseFilter):
    def matches(self, response_or_exception):
        if isinstance(response_or_exception, Response):
            return DEFAULT_ERROR_MAPPING.get(response_or_exception.status_code)
        found = DEFAULT_ERROR_MAPPING.get(type(response_or_exception))
        return found or (DEFAULT_ERROR_MAPPING[RequestException] if isinstance(response_or_exception, RequestException) else None)


@dataclass
class DefaultErrorHandler(ErrorHandler):
    parameters: InitVar[Mapping[str, Any]]
    config: Config
    response_filters: Optional[List[HttpResponseFilter]] = None
    max_retries: Optional[int] = 5
    max_time: int = 600
    backoff_strategies: Optional[List[BackoffStrategy]] = None

    def __post_init__(self, parameters):
        self.response_filters = self.response_filters or []

    def interpret_response(self, response_or_exception):
        for one in self.response_filters:
            matched = one.matches(response_or_exception=response_or_exception)
            if matched:
                return matched
        if isinstance(response_or_exception, Response) and response_or_exception.ok:
            return SUCCESS_RESOLUTION
        known = DefaultHttpResponseFilter().matches(response_or_exception)
        return known or create_fallback_error_resolution(response_or_exception)

    def backoff_time(self, response_or_exception, attempt_count=0):
        for one in self.backoff_strategies or []:
            seconds = one.backoff_time(response_or_exception=response_or_exception, attempt_count=attempt_count)
            if seconds:
                return seconds
        return None


class HttpStatusErrorHandler(ErrorHandler):
    def __init__(self, logger=None, error_mapping=None, max_retries=5, max_time=600):
        self._error_mapping = error_mapping or DEFAULT_ERROR_MAPPING
        self.max_retries, self.max_time = max_retries, max_time

    def interpret_response(self, response_or_exception=None):
        if isinstance(response_or_exception, Exception):
            known = self._error_mapping.get(type(response_or_exception), self._error_mapping.get(RequestException))
            return known or create_fallback_error_resolution(response_or_exception)
        known = self._error_mapping.get(response_or_exception.status_code)
        if known:
            return known
        return SUCCESS_RESOLUTION if response_or_exception.ok else create_fallback_error_resolution(response_or_exception)


class APIBudget:
    def __init__(self, policies=None, **_):
        if policies:
            raise NotImplementedError("an APIBudget with policies")


class InMemoryMessageRepository:
    """For the logs of the CDK, which components do not write here."""

    def __init__(self, *_):
        pass


NoopMessageRepository = InMemoryMessageRepository


def add_to_secrets(secret):
    """Messages of components never contain tokens that the service keeps."""


# --- clients

_is_requester = False


@contextlib.contextmanager
def outside_of_requester():
    global _is_requester
    before, _is_requester = _is_requester, False
    try:
        yield
    finally:
        _is_requester = before


def for_requester(one, *args):
    """While a requester sends its request: the service adds the authentication, and retries."""
    global _is_requester
    _is_requester = True
    try:
        return one.send_request(**args[0])
    finally:
        _is_requester = False


class HttpClient:
    """Requests of a component. Those of a requester go through the service's own client."""

    def __init__(self, name="", logger=None, error_handler=None, authenticator=None, backoff_strategy=None, **_):
        self._name, self._logger, self._session = name, logger, Session()
        self._error_handler = error_handler or HttpStatusErrorHandler()
        self._session.auth = authenticator
        strategies = backoff_strategy or []
        self._strategies = strategies if isinstance(strategies, list) else [strategies]

    def _dedupe_query_params(self, url, params):
        known = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        return {name: value for name, value in (params or {}).items() if str(value) != known.get(name)}

    def _create_prepared_request(
        self, http_method, url, dedupe_query_params=False, headers=None, params=None, json=None, data=None
    ):
        query = self._dedupe_query_params(url, params) if dedupe_query_params else params or {}
        more = {}
        if http_method.upper() in BODY_REQUEST_METHODS:
            if json and data:
                raise RequestBodyException("Only one of request_body_data and request_body_json can return data")
            more = {"json": json} if json else {"data": data} if data else {}
        return self._session.prepare_request(Request(method=http_method, url=url, headers=headers, params=query, **more))

    def send_request(
        self, http_method, url, request_kwargs=None, headers=None, params=None, json=None, data=None,
        dedupe_query_params=False, **_,
    ):
        method = getattr(http_method, "value", http_method)
        request = self._create_prepared_request(
            http_method=method, url=url, dedupe_query_params=dedupe_query_params, headers=headers, params=params,
            json=json, data=data,
        )
        if _is_requester:
            return request, Response(ask("send", wire_of(request)), request)
        return request, self._send(request)

    def _send(self, request):
        for attempt in range(1, self._error_handler.max_retries + 2):
            try:
                seen = self._session._send(request.copy(), self._session.auth)
            except RequestException as error:
                seen = error
            resolution = self._error_handler.interpret_response(seen)
            if resolution.response_action in (ResponseAction.SUCCESS, ResponseAction.IGNORE):
                return seen if isinstance(seen, Response) else None
            if resolution.response_action is ResponseAction.FAIL or attempt > self._error_handler.max_retries:
                break
            time.sleep(self._pause(seen, attempt))
        message = resolution.error_message or "The request failed"
        raise AirbyteTracedException(message, message, resolution.failure_type)

    def _pause(self, seen, attempt):
        for one in [*self._strategies, self._error_handler]:
            seconds = getattr(one, "backoff_time", lambda *_: None)(seen, attempt)
            if seconds:
                return seconds
        return 2**attempt


# --- requesters


@dataclass
class InterpolatedRequestInputProvider:
    parameters: InitVar[Mapping[str, Any]]
    request_inputs: Optional[RequestInput] = None
    config: Config = field(default_factory=dict)

    def __post_init__(self, parameters):
        self._parameters = parameters

    def eval_request_inputs(self, stream_state=None, stream_slice=None, next_page_token=None, *_, **__):
        scope = {"stream_slice": stream_slice, "next_page_token": next_page_token}
        text = lambda one: InterpolatedString.create(one, parameters=self._parameters).eval(self.config, **scope)
        if not isinstance(self.request_inputs, collections.abc.Mapping):
            return text(self.request_inputs or "") or {}
        evaluate = lambda one: text(one) if isinstance(one, str) else one
        pairs = {text(name): evaluate(value) for name, value in self.request_inputs.items()}
        return {name: value for name, value in pairs.items() if value not in (None, "")}


def _nested(value, evaluate):
    if isinstance(value, collections.abc.Mapping):
        found = {evaluate(name): _nested(one, evaluate) for name, one in value.items()}
        return {name: one for name, one in found.items() if one not in (None, "")}
    if isinstance(value, list):
        return [_nested(one, evaluate) for one in value]
    return evaluate(value) if isinstance(value, str) else value


@dataclass
class InterpolatedRequestOptionsProvider:
    parameters: InitVar[Mapping[str, Any]]
    config: Config = field(default_factory=dict)
    request_parameters: Optional[RequestInput] = None
    request_headers: Optional[RequestInput] = None
    request_body_data: Optional[RequestInput] = None
    request_body_json: Optional[Any] = None
    request_body: Optional[Any] = None
    query_properties_key: Optional[str] = None

    def __post_init__(self, parameters):
        if self.query_properties_key or self.request_body:
            raise NotImplementedError("query_properties_key and request_body of a requester in Python")
        self._parameters = parameters
        provider = lambda inputs: InterpolatedRequestInputProvider(
            config=self.config, request_inputs=inputs, parameters=parameters
        )
        self._params, self._headers = provider(self.request_parameters), provider(self.request_headers)
        self._data = provider(self.request_body_data)

    def get_request_params(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        found = self._params.eval_request_inputs(stream_state, stream_slice, next_page_token)
        return found if isinstance(found, dict) else {}

    def get_request_headers(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._headers.eval_request_inputs(stream_state, stream_slice, next_page_token)

    def get_request_body_data(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._data.eval_request_inputs(stream_state, stream_slice, next_page_token)

    def get_request_body_json(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        scope = {"stream_slice": stream_slice, "next_page_token": next_page_token}
        text = lambda one: InterpolatedString.create(one, parameters=self._parameters).eval(self.config, **scope)
        return _nested(self.request_body_json or {}, text)


class ByService(DeclarativeAuthenticator):
    """In the place of a requester's authenticator and error handler, which the service applies."""

    def get_auth_header(self):
        return {}

    def __setattr__(self, name, value):
        raise NotImplementedError(f"a requester that sets {name} of its error handler or authenticator")


def _combined(mappings):
    whole = {}
    for one in mappings:
        if isinstance(one, str):
            if one:
                return one
            continue
        for name, value in (one or {}).items():
            if name in whole and whole[name] != value:
                raise ValueError(f"Duplicate keys found: {name}")
            whole[name] = value
    return whole


@dataclass
class HttpRequester:
    name: str
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    url: Optional[Union[InterpolatedString, str]] = None
    url_base: Optional[Union[InterpolatedString, str]] = None
    path: Optional[Union[InterpolatedString, str]] = None
    authenticator: Any = None
    http_method: Union[str, HttpMethod] = HttpMethod.GET
    request_options_provider: Optional[InterpolatedRequestOptionsProvider] = None
    error_handler: Any = None
    api_budget: Any = None
    disable_retries: bool = False
    message_repository: Any = None
    use_cache: bool = False
    stream_response: bool = False

    def __post_init__(self, parameters):
        template = lambda text: InterpolatedString.create(text or "", parameters=parameters)
        self._url, self._url_base, self._path = template(self.url), template(self.url_base), template(self.path)
        self._request_options_provider = self.request_options_provider or InterpolatedRequestOptionsProvider(
            config=self.config, parameters=parameters
        )
        self.authenticator, self.error_handler = self.authenticator or ByService(), ByService()
        self._authenticator = self.authenticator
        self._http_method = HttpMethod[self.http_method] if isinstance(self.http_method, str) else self.http_method
        self._parameters = parameters
        own = None if isinstance(self.authenticator, ByService) else self.authenticator
        self._http_client = HttpClient(name=self.name, authenticator=own)

    logger = property(lambda self: logging.getLogger(f"airbyte.HttpRequester.{self.name}"))

    def get_authenticator(self):
        return self._authenticator

    def _evaluated(self, template, stream_slice, next_page_token):
        found = template.eval(self.config, stream_slice=stream_slice, next_page_token=next_page_token)
        return "" if found is None else str(found)

    def get_url(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._evaluated(self._url, stream_slice, next_page_token)

    def get_url_base(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._evaluated(self._url_base, stream_slice, next_page_token)

    def get_path(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._evaluated(self._path, stream_slice, next_page_token).lstrip("/")

    def get_method(self):
        return self._http_method

    def get_request_params(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._options("params", stream_slice, next_page_token)

    def get_request_headers(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._options("headers", stream_slice, next_page_token)

    def get_request_body_data(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._options("body_data", stream_slice, next_page_token) or {}

    def get_request_body_json(self, *, stream_state=None, stream_slice=None, next_page_token=None):
        return self._options("body_json", stream_slice, next_page_token)

    def _options(self, kind, stream_slice, next_page_token):
        get = getattr(self._request_options_provider, f"get_request_{kind}")
        return get(stream_slice=stream_slice, next_page_token=next_page_token)

    def _get_url(self, *, path=None, stream_state=None, stream_slice=None, next_page_token=None):
        scope = {"stream_state": stream_state, "stream_slice": stream_slice, "next_page_token": next_page_token}
        base = self.get_url_base(**scope) or self.get_url(**scope)
        return self._join_url(base, path or self.get_path(**scope))

    @classmethod
    def _join_url(cls, url_base, path=None):
        if not path:
            return url_base
        return urllib.parse.urljoin(url_base if url_base.endswith("/") else f"{url_base}/", path)

    def _get_request_options(
        self, stream_state, stream_slice, next_page_token, requester_method, auth_options_method, extra_options=None
    ):
        own = requester_method(stream_state=stream_state, stream_slice=stream_slice, next_page_token=next_page_token)
        return _combined([own, auth_options_method(), extra_options])

    def _request_headers(self, stream_state=None, stream_slice=None, next_page_token=None, extra_headers=None):
        get, own = self.get_request_headers, self.get_authenticator().get_auth_header
        headers = self._get_request_options(stream_state, stream_slice, next_page_token, get, own, extra_headers)
        return {str(name): str(value) for name, value in headers.items()}

    def _request_params(self, stream_state=None, stream_slice=None, next_page_token=None, extra_params=None):
        get, own = self.get_request_params, self.get_authenticator().get_request_params
        params = self._get_request_options(stream_state, stream_slice, next_page_token, get, own, extra_params)
        for name, value in params.items():
            if isinstance(value, dict):
                raise ValueError(f"Invalid value for `{name}` parameter. The values of request params cannot be an object.")
        return params

    def _request_body_data(self, stream_state=None, stream_slice=None, next_page_token=None, extra_body_data=None):
        get, own = self.get_request_body_data, self.get_authenticator().get_request_body_data
        return self._get_request_options(stream_state, stream_slice, next_page_token, get, own, extra_body_data)

    def _request_body_json(self, stream_state=None, stream_slice=None, next_page_token=None, extra_body_json=None):
        get, own = self.get_request_body_json, self.get_authenticator().get_request_body_json
        return self._get_request_options(stream_state, stream_slice, next_page_token, get, own, extra_body_json)

    def send_request(
        self, stream_state=None, stream_slice=None, next_page_token=None, path=None, request_headers=None,
        request_params=None, request_body_data=None, request_body_json=None, log_formatter=None,
    ):
        scope = (stream_state, stream_slice, next_page_token)
        url = self._get_url(
            path=path, stream_state=stream_state, stream_slice=stream_slice, next_page_token=next_page_token
        )
        _, response = self._http_client.send_request(
            http_method=self.get_method().value,
            url=url,
            request_kwargs={},
            headers=self._request_headers(*scope, request_headers),
            params=self._request_params(*scope, request_params),
            json=self._request_body_json(*scope, request_body_json),
            data=self._request_body_data(*scope, request_body_data),
            dedupe_query_params=True,
        )
        return response
