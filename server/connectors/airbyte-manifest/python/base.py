"""The part of Airbyte's CDK that custom components use, for the sandbox. `_host` is set by the process."""

import abc, ast, base64, builtins, collections.abc, dataclasses, datetime, email.message, enum, functools, hashlib, hmac
import http, importlib.machinery, inspect, io, itertools, json, linecache, logging, math, re, string, sys, time, types, typing, urllib.parse
from dataclasses import InitVar, dataclass, field
from typing import Any, Iterable, List, Mapping, MutableMapping, Optional, Union

Config = Mapping[str, Any]
Record = Mapping[str, Any]
StreamState = Mapping[str, Any]
FieldPointer = List[str]
_host = None


def _ask(name, *args):
    reply = json.loads(_host(_dump([name, *args])), parse_float=_number)
    if "error" in reply:
        raise _HostError(reply["error"])
    return reply["value"]


class _HostError(BaseException):
    """A failure of the service, which components do not handle."""


class _ExactFloat(float):
    """A number with more digits than a float has, which stays as it is unless a component changes it."""


def _number(text):
    value = float(text)
    if len(text) < 16 or repr(value) == text:
        return value
    exact = _ExactFloat(value)
    exact.text = text
    _exact.append(True)
    return exact


_exact = []


def _other(value):
    if isinstance(value, StreamSlice):
        return dict(value)
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (set, frozenset, collections.abc.Iterator)):
        return list(value)
    raise TypeError(f"A value of type {type(value).__name__} is not JSON")


def _dump(value):
    if not _exact:
        return json.dumps(value, default=_other, allow_nan=False)
    text = lambda one: getattr(one, "text", None) or float.__repr__(one)
    encode = json.encoder._make_iterencode(
        None, _other, json.encoder.encode_basestring_ascii, None, text, ": ", ", ", False, False, False
    )
    return "".join(encode(value, 0))


# --- airbyte_cdk: interpolation


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


_TYPE_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def _evaluate(kind, text, config, parameters, scope):
    return _ask("evaluate", kind, text, {**scope, "config": config, "parameters": parameters or {}})


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
        kind = _TYPE_NAMES[valid_types[0]] if valid_types else "any"
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


# --- dpath


def _parts(path, separator="/"):
    if isinstance(path, str):
        return [part for part in path.lstrip(separator).split(separator)]
    return list(path)


def _step(value, part):
    if isinstance(value, collections.abc.Mapping):
        if part in value:
            return value[part]
        if isinstance(part, str) and part.lstrip("-").isdigit() and int(part) in value:
            return value[int(part)]
        raise KeyError(part)
    if isinstance(value, (list, tuple)):
        return value[int(part)]
    raise KeyError(part)


_MISSING = object()


def _checked(parts):
    for part in parts:
        if isinstance(part, str) and any(sign in part for sign in "*?[") and part != "*":
            raise NotImplementedError(f"dpath pattern {part!r} is not supported")
    return parts


def dpath_get(obj, glob, separator="/", default=_MISSING):
    found = dpath_values(obj, glob, separator)
    if len(found) > 1:
        raise ValueError(f"dpath.get() globs must match only one leaf : {glob}")
    if found:
        return found[0]
    if default is _MISSING:
        raise KeyError(glob)
    return default


def dpath_values(obj, glob, separator="/"):
    found = [obj]
    for part in _checked(_parts(glob, separator)):
        below = []
        for value in found:
            if part == "*":
                if isinstance(value, collections.abc.Mapping):
                    below.extend(value.values())
                elif isinstance(value, (list, tuple)):
                    below.extend(value)
            else:
                try:
                    below.append(_step(value, part))
                except (KeyError, IndexError, ValueError):
                    pass
        found = below
    return found


def dpath_new(obj, path, value, separator="/"):
    parts = _parts(path, separator)
    for part, following in zip(parts, parts[1:]):
        try:
            obj = _step(obj, part)
        except (KeyError, IndexError):
            below = [] if isinstance(following, int) else {}
            _put(obj, part, below)
            obj = below
    _put(obj, parts[-1], value)


def _put(obj, part, value):
    if isinstance(obj, list):
        obj.extend([None] * (int(part) + 1 - len(obj)))
        obj[int(part)] = value
    else:
        obj[part] = value


# --- requests


class CaseInsensitiveDict(collections.abc.MutableMapping):
    def __init__(self, data=None, **more):
        self._store = {}
        self.update(data or {}, **more)

    def __setitem__(self, key, value):
        self._store[key.lower()] = (key, value)

    def __getitem__(self, key):
        return self._store[key.lower()][1]

    def __delitem__(self, key):
        del self._store[key.lower()]

    def __iter__(self):
        return (key for key, _ in self._store.values())

    def __len__(self):
        return len(self._store)

    def __repr__(self):
        return repr(dict(self.items()))

    def copy(self):
        return CaseInsensitiveDict(dict(self.items()))


class RequestException(IOError):
    def __init__(self, *args, response=None, request=None):
        super().__init__(*args)
        self.response = response
        self.request = request or getattr(response, "request", None)


class HTTPError(RequestException):
    pass


class RequestsConnectionError(RequestException):
    pass


class Timeout(RequestException):
    pass


class InvalidURL(RequestException, ValueError):
    pass


class RequestsJSONDecodeError(RequestException, json.JSONDecodeError):
    def __init__(self, *args):
        json.JSONDecodeError.__init__(self, *args)
        self.response = self.request = None

    def __reduce__(self):
        return json.JSONDecodeError.__reduce__(self)


def _query(url, params):
    if not params:
        return url
    pairs = params.items() if isinstance(params, collections.abc.Mapping) else params
    if isinstance(params, (str, bytes)):
        more = params if isinstance(params, str) else params.decode()
    else:
        more = urllib.parse.urlencode([(key, value) for key, value in pairs if value is not None], doseq=True)
    if not more:
        return url
    url, _, fragment = url.partition("#")
    return url + ("&" if "?" in url else "?") + more + (f"#{fragment}" if fragment else "")


class PreparedRequest:
    def __init__(self, method=None, url=None, headers=None, body=None):
        self.method = method
        self.url = url
        self.headers = CaseInsensitiveDict(headers)
        self.body = body

    def prepare_url(self, url, params):
        self.url = _query(url, params)

    @property
    def path_url(self):
        parts = urllib.parse.urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def copy(self):
        return PreparedRequest(self.method, self.url, dict(self.headers.items()), self.body)


class Response:
    def __init__(self, seen, request=None):
        self.status_code = seen["status"]
        self.headers = CaseInsensitiveDict(seen["headers"])
        self.text = seen["text"]
        self.url = seen["url"]
        self.request = request or PreparedRequest("GET", seen["url"])
        self.encoding = "utf-8"
        self._json = _MISSING

    @property
    def content(self):
        return self.text.encode("utf-8")

    @property
    def ok(self):
        return self.status_code < 400

    __bool__ = lambda self: self.ok

    @property
    def reason(self):
        try:
            return http.HTTPStatus(self.status_code).phrase
        except ValueError:
            return ""

    def json(self, **_):
        try:
            return json.loads(self.text, parse_float=_number)
        except json.JSONDecodeError as error:
            raise RequestsJSONDecodeError(error.msg, error.doc, error.pos)

    def iter_lines(self, decode_unicode=False, **_):
        for line in self.text.splitlines():
            yield line if decode_unicode else line.encode("utf-8")

    def raise_for_status(self):
        if self.status_code >= 400:
            kind = "Client" if self.status_code < 500 else "Server"
            raise HTTPError(f"{self.status_code} {kind} Error for url: {self.url}", response=self)

    def close(self):
        pass


class AuthBase:
    def __call__(self, request):
        raise NotImplementedError("Auth hooks must be callable.")


class HTTPBasicAuth(AuthBase):
    def __init__(self, username, password):
        self.username, self.password = username, password

    def __call__(self, request):
        pair = f"{self.username}:{self.password}".encode("latin1")
        request.headers["Authorization"] = "Basic " + base64.b64encode(pair).decode()
        return request


class Session:
    def __init__(self):
        self.headers = CaseInsensitiveDict()
        self.auth = None
        self.params = {}

    def request(self, method, url, params=None, data=None, headers=None, auth=None, json=None, timeout=None, **more):
        for name in more:
            if name not in ("allow_redirects", "verify", "stream"):
                raise NotImplementedError(f"requests: {name} is not supported")
        request = _prepared(method, url, {**self.params, **(params or {})} if self.params else params, data, json)
        request.headers.update({**self.headers, **request.headers, **(headers or {})})
        return self._send(request, auth or self.auth)

    def _send(self, request, auth=None):
        if isinstance(auth, tuple):
            auth = HTTPBasicAuth(*auth)
        if auth is not None:
            request = auth(request)
        reply = _ask("request", _wire(request))
        if "failed" in reply:
            raise RequestsConnectionError(reply["failed"], request=request)
        return Response(reply, request)

    def send(self, request, **_):
        return self._send(request)

    def get(self, url, **more):
        return self.request("GET", url, **more)

    def post(self, url, data=None, json=None, **more):
        return self.request("POST", url, data=data, json=json, **more)

    def put(self, url, data=None, **more):
        return self.request("PUT", url, data=data, **more)

    def patch(self, url, data=None, **more):
        return self.request("PATCH", url, data=data, **more)

    def delete(self, url, **more):
        return self.request("DELETE", url, **more)

    def close(self):
        pass

    __enter__ = lambda self: self
    __exit__ = lambda self, *_: None


def _prepared(method, url, params, data, json_body):
    request = PreparedRequest(method.upper(), _query(url, params))
    if json_body is not None and not data:
        request.body = json.dumps(json_body).encode()
        request.headers["Content-Type"] = "application/json"
    elif isinstance(data, (str, bytes)):
        request.body = data
    elif data:
        pairs = data.items() if isinstance(data, collections.abc.Mapping) else data
        request.body = urllib.parse.urlencode([(key, value) for key, value in pairs if value is not None], doseq=True)
        request.headers["Content-Type"] = "application/x-www-form-urlencoded"
    return request


def _wire(request):
    body = request.body
    if isinstance(body, bytes):
        body = body.decode("utf-8")
    headers = {key: str(value) for key, value in request.headers.items() if value is not None}
    return {"method": request.method, "url": request.url, "headers": headers, "body": body}


def _once(method):
    return lambda url, **more: Session().request(method, url, **more)


def _post(url, data=None, json=None, **more):
    return Session().post(url, data=data, json=json, **more)


# --- airbyte_cdk: components


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
            yield json.loads(line, parse_float=_number)


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
    return next((type for type, known in _TYPE_NAMES.items() if known == name), name)


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


class AbstractHeaderAuthenticator(AuthBase):
    def __call__(self, request):
        request.headers.update(self.get_auth_header())
        return request

    def get_auth_header(self):
        return {self.auth_header: self.token} if self.auth_header else {}

    @property
    def auth_header(self):
        raise NotImplementedError("auth_header")

    @property
    def token(self):
        raise NotImplementedError("token")


@dataclass
class DeclarativeAuthenticator(AbstractHeaderAuthenticator):
    def get_request_params(self):
        return {}

    def get_request_body_data(self):
        return {}

    def get_request_body_json(self):
        return {}


@dataclass
class NoAuth(DeclarativeAuthenticator):
    parameters: InitVar[Mapping[str, Any]]
    auth_header = property(lambda self: "")
    token = property(lambda self: "")


@dataclass
class BasicHttpAuthenticator(DeclarativeAuthenticator):
    username: Union[InterpolatedString, str]
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    password: Union[InterpolatedString, str] = ""

    def __post_init__(self, parameters):
        self._username = InterpolatedString.create(self.username, parameters=parameters)
        self._password = InterpolatedString.create(self.password, parameters=parameters)

    auth_header = property(lambda self: "Authorization")

    @property
    def token(self):
        pair = f"{self._username.eval(self.config)}:{self._password.eval(self.config)}".encode("utf8")
        return f"Basic {base64.b64encode(pair).decode('utf8')}"


@dataclass
class _FixedAuthenticator(DeclarativeAuthenticator):
    """An authenticator of the manifest that a custom one contains: the service applies it."""

    component: Mapping[str, Any]

    def __call__(self, request):
        signed = _ask("sign", self.component, _wire(request))
        request.url, request.body = signed["url"], signed["body"]
        request.headers.clear()
        request.headers.update(signed["headers"])
        return request

    def get_auth_header(self):
        probe = self(PreparedRequest("GET", "http://probe.invalid/"))
        return dict(probe.headers.items())

    auth_header = property(lambda self: next(iter(self.get_auth_header()), ""))
    token = property(lambda self: next(iter(self.get_auth_header().values()), ""))


class BearerAuthenticator(_FixedAuthenticator):
    pass


class ApiKeyAuthenticator(_FixedAuthenticator):
    pass


class DeclarativeOauth2Authenticator(_FixedAuthenticator):
    pass


class DeclarativeSingleUseRefreshTokenOauth2Authenticator(_FixedAuthenticator):
    pass


class SyncMode(enum.Enum):
    full_refresh = "full_refresh"
    incremental = "incremental"


class FailureType(enum.Enum):
    system_error = "system_error"
    config_error = "config_error"
    transient_error = "transient_error"


class Type(enum.Enum):
    RECORD = "RECORD"
    STATE = "STATE"
    LOG = "LOG"


class AirbyteMessage:
    """Never created: parents have records alone."""


class Stream:
    """A parent stream, which the service reads."""

    def __init__(self, path, name):
        self._path, self.name = path, name

    def read_records(self, sync_mode=None, cursor_field=None, stream_slice=None, stream_state=None):
        key = None if stream_slice is None else getattr(stream_slice, "_key", None)
        if stream_slice is not None and key is None:
            raise NotImplementedError("read_records takes slices of its own stream_slices alone")
        yield from _ask("read", self._path, key)

    read_only_records = lambda self, state=None: self.read_records()

    def stream_slices(self, *, sync_mode=None, cursor_field=None, stream_state=None):
        for known in _ask("slices", self._path):
            one = StreamSlice(partition=known["partition"], cursor_slice=known["cursor_slice"])
            one._key = known["key"]
            yield one

    def __getattr__(self, name):
        raise NotImplementedError(f"{name} of a parent stream is not supported")


@dataclass
class ParentStreamConfig:
    stream: Stream
    parent_key: Union[InterpolatedString, str]
    partition_field: Union[InterpolatedString, str]
    config: Config
    parameters: InitVar[Mapping[str, Any]]
    extra_fields: Any = None
    request_option: Any = None
    incremental_dependency: bool = False

    def __post_init__(self, parameters):
        self.parent_key = InterpolatedString.create(self.parent_key, parameters=parameters)
        self.partition_field = InterpolatedString.create(self.partition_field, parameters=parameters)


class StreamSlicer(abc.ABC):
    @abc.abstractmethod
    def stream_slices(self):
        pass


PartitionRouter = StreamSlicer


@dataclass
class SubstreamPartitionRouter(StreamSlicer):
    parent_stream_configs: List[ParentStreamConfig]
    config: Config
    parameters: InitVar[Mapping[str, Any]]

    def __post_init__(self, parameters):
        self._parameters = parameters

    def stream_slices(self):
        for one in self.parent_stream_configs:
            if one.extra_fields:
                raise NotImplementedError("extra_fields of a custom partition router")
            key, target = one.parent_key.eval(self.config), one.partition_field.eval(self.config)
            for parent_slice in one.stream.stream_slices():
                for record in one.stream.read_records(stream_slice=parent_slice):
                    try:
                        value = dpath_get(record, key)
                    except KeyError:
                        continue
                    partition = {target: value, "parent_slice": dict(parent_slice.partition)}
                    yield StreamSlice(partition=partition, cursor_slice={})


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


class AirbyteTracedException(Exception):
    def __init__(self, internal_message=None, message=None, failure_type=None, exception=None, **_):
        super().__init__(message or internal_message)
        self.message, self.internal_message = message, internal_message


# --- modules


def _module(name, members):
    module = types.ModuleType(name)
    module.__path__ = []
    module.__dict__.update(members)
    return module


_EXCEPTIONS = {
    "RequestException": RequestException, "HTTPError": HTTPError, "ConnectionError": RequestsConnectionError,
    "Timeout": Timeout, "InvalidURL": InvalidURL, "JSONDecodeError": RequestsJSONDecodeError,
}
_DPATH = {"get": dpath_get, "values": dpath_values, "new": dpath_new}
_AUTH = {"AuthBase": AuthBase, "HTTPBasicAuth": HTTPBasicAuth}
_MODULES = {
    "requests": {
        **_EXCEPTIONS, "Response": Response, "Session": Session, "PreparedRequest": PreparedRequest, "post": _post,
        "session": Session, "request": lambda method, url, **more: Session().request(method, url, **more),
        **{name: _once(name.upper()) for name in ("get", "put", "patch", "delete")},
        "exceptions": _module("requests.exceptions", _EXCEPTIONS), "auth": _module("requests.auth", _AUTH),
    },
    "requests.exceptions": _EXCEPTIONS,
    "requests.auth": _AUTH,
    "dpath": {**_DPATH, "util": _module("dpath.util", _DPATH)},
    "dpath.util": _DPATH,
}
_AIRBYTE = {
    name: value
    for name, value in list(globals().items())
    if not name.startswith("_") and getattr(value, "__module__", "") in ("__main__", "base", __name__)
    and name not in ("RequestsConnectionError", "RequestsJSONDecodeError")
} | {"Config": Config, "Record": Record, "StreamState": StreamState, "FieldPointer": FieldPointer}
_BLOCKED = {"js", "pyodide_js", "pyodide", "_pyodide", "_pyodide_core", "ctypes", "_ctypes", "micropip", "webbrowser"}


class _Missing(type):
    """What the sandbox does not have. A class that uses it is refused before it runs."""

    def __call__(cls, *_, **__):
        raise NotImplementedError(f"{cls.__name__} is not available to components")


def _missing(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(name, (), {})


class _Finder:
    """Imports the modules of this file, under any name of the CDK's packages, and none that lead out."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        root = name.partition(".")[0]
        if root in _BLOCKED:
            raise ImportError(f"{name} is not available to components")
        if name in _MODULES or root == "airbyte_cdk":
            return importlib.machinery.ModuleSpec(name, _Finder, is_package=True)
        return None

    @staticmethod
    def find_missing(name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, _Finder, is_package=True)

    @staticmethod
    def create_module(spec):
        module = _module(spec.name, _MODULES.get(spec.name, _AIRBYTE if spec.name.startswith("airbyte_cdk") else {}))
        module.__getattr__ = _missing
        return module

    @staticmethod
    def exec_module(module):
        pass


_instances = {}
_module_names = []
_DECLARATIVE = {
    "JsonDecoder": JsonDecoder, "JsonlDecoder": JsonlDecoder, "DpathExtractor": DpathExtractor,
    "BasicHttpAuthenticator": BasicHttpAuthenticator, "AddedFieldDefinition": AddedFieldDefinition,
    "ParentStreamConfig": ParentStreamConfig,
}
_BY_HOST = {
    "BearerAuthenticator": BearerAuthenticator, "ApiKeyAuthenticator": ApiKeyAuthenticator,
    "OAuthAuthenticator": DeclarativeOauth2Authenticator,
}


def _load(source, config):
    global _config, _components
    _config = config
    name = "components"
    linecache.cache["components.py"] = (len(source), None, source.splitlines(True), "components.py")
    _components = types.ModuleType(name)
    sys.modules[name] = _components
    exec(compile(source, "components.py", "exec"), _components.__dict__)


def _hinted(hint):
    """The type of a component without one, by the annotation of its field."""
    while typing.get_origin(hint) is not None:
        hint = typing.get_args(hint)[0]
    return getattr(hint, "__name__", None)


def _build(node, hint=None):
    """A component of the manifest, as an object."""
    if isinstance(node, list):
        return [_build(one, hint) for one in node]
    if not isinstance(node, dict):
        return node
    if "class_name" in node:
        return _custom(node)
    type_name = node.get("type") or _hinted(hint)
    if type_name == "DeclarativeStream":
        return Stream(node["$path"], node["name"])
    if type_name in _BY_HOST:
        return _BY_HOST[type_name](component=node)
    known = _DECLARATIVE.get(type_name)
    if known is None:
        return node
    parameters = node.get("$parameters", {})
    names = [one for one in inspect.signature(known).parameters if one in node]
    more = {name: _build(node[name]) for name in names}
    accepts = inspect.signature(known).parameters
    if "config" in accepts:
        more["config"] = _config
    if "parameters" in accepts:
        more["parameters"] = parameters
    return known(**more)


def _custom(node):
    kind = getattr(_components, node["class_name"].rpartition(".")[2])
    hints = typing.get_type_hints(kind)
    given = {**node, "config": _config, "parameters": node.get("$parameters", {})}
    plain = ("config", "parameters")
    values = {
        name: given[name] if name in plain else _build(given[name], hint)
        for name, hint in hints.items()
        if name in given
    }
    return kind(**values)


def _instance(number, node):
    if number not in _instances:
        _instances[number] = _build(node)
    return _instances[number]


def _slice(known):
    if known is None:
        return None
    return StreamSlice(partition=known["partition"], cursor_slice=known["cursor_slice"], extra_fields=known["extra_fields"])


def _extract(one, response):
    return list(one.extract_records(Response(response)))


def _transform(one, records, stream_state, stream_slice):
    known = _slice(stream_slice)
    for record in records:
        one.transform(record, config=_config, stream_state=stream_state, stream_slice=known)
    return records


def _filter(one, records, stream_state, stream_slice, next_page_token):
    return list(
        one.filter_records(
            records, stream_state=stream_state, stream_slice=_slice(stream_slice), next_page_token=next_page_token
        )
    )


def _sign(one, wire):
    body = wire["body"]
    if body is not None and "json" in wire["headers"].get("content-type", ""):
        body = body.encode("utf-8")
    request = PreparedRequest(wire["method"], wire["url"], wire["headers"], body)
    params = getattr(one, "get_request_params", dict)()
    if params:
        request.prepare_url(request.url, params)
    if getattr(one, "get_request_body_data", dict)() or getattr(one, "get_request_body_json", dict)():
        raise NotImplementedError("an authenticator that adds to the body")
    return _wire(one(request))


def _slices(one):
    found = []
    for item in one.stream_slices():
        if not isinstance(item, StreamSlice):
            item = StreamSlice(partition=item, cursor_slice={})
        found.append({"partition": item.partition, "cursor_slice": item.cursor_slice, "extra_fields": item.extra_fields})
    return found


def _paging(one):
    return {"initial": one.initial_token, "size": one.get_page_size()}


def _next_page(one, response, last_page_size, last_record, last_page_token_value):
    return one.next_page_token(
        response=Response(response),
        last_page_size=last_page_size,
        last_record=last_record,
        last_page_token_value=last_page_token_value,
    )


_CALLS = {
    "extract": _extract, "transform": _transform, "filter": _filter, "sign": _sign, "slices": _slices,
    "paging": _paging, "next_page": _next_page,
}


def _place(error):
    """Class and line of the innermost frame in the components."""
    found, trace = {}, error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == "components.py":
            found = {"line": trace.tb_lineno, "function": code.co_qualname}
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        found = {"line": error.lineno, "function": "components.py"}
    return found


def dispatch(text):
    del _exact[:]
    try:
        call = json.loads(text, parse_float=_number)
        if "source" in call:
            return _dump({"value": _load(call["source"], call["config"])})
        one = _instance(call["number"], call["component"])
        return _dump({"value": _CALLS[call["call"]](one, *call["args"])})
    except _HostError as error:
        return json.dumps({"host": error.args[0]})
    except BaseException as error:
        what = {"type": type(error).__name__, "message": str(error)[:2000], **_place(error)}
        return json.dumps({"error": what})


def _close():
    """Before any code of a component runs: no way to the engine that runs Python."""
    for name in list(sys.modules):
        if name.partition(".")[0] in _BLOCKED:
            del sys.modules[name]
    sys.meta_path[:] = [one for one in sys.meta_path if "pyodide" not in type(one).__module__ and "js" not in type(one).__name__.lower()]
    sys.meta_path.insert(0, _Finder)
    sys.meta_path.append(types.SimpleNamespace(find_spec=_Finder.find_missing))
    time.sleep = lambda seconds: _ask("sleep", seconds)
    random = sys.modules.get("random")
    if random:
        random.seed()
