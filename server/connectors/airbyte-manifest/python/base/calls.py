"""What the service calls: it builds components of the manifest and runs them."""

import importlib, inspect, json, sys, time, typing

from base import files, modules, requesters
from base.auth import (
    ApiKeyAuthenticator, BasicHttpAuthenticator, BearerAuthenticator, DeclarativeSingleUseRefreshTokenOauth2Authenticator,
    _FixedOauth2Authenticator,
)
from base.host import HostError, ask, dump, exact_number, forget_exact_numbers
from base.interpolation import StreamSlice
from base.records import AddedFieldDefinition, DpathExtractor, JsonDecoder, JsonlDecoder, RecordFilter
from base.requesters import (
    ConstantBackoffStrategy, ExponentialBackoffStrategy, HttpResponseFilter, RequestOption,
    WaitTimeFromHeaderBackoffStrategy,
)
from base.retrievers import (
    DeclaredRequester, RecordSelector, ServicePaginator, ServiceRequester, ServiceSelector, SimpleRetriever,
)
from base.schemas import InlineSchemaLoader, JsonFileSchemaLoader
from base.streams import ParentStreamConfig, Stream
from base.web import PreparedRequest, RequestsConnectionError, Response, wire_of

_instances = {}
_DECLARATIVE = {
    "JsonDecoder": JsonDecoder, "JsonlDecoder": JsonlDecoder, "DpathExtractor": DpathExtractor,
    "BasicHttpAuthenticator": BasicHttpAuthenticator, "AddedFieldDefinition": AddedFieldDefinition,
    "ParentStreamConfig": ParentStreamConfig, "RequestOption": RequestOption, "InlineSchemaLoader": InlineSchemaLoader,
    "JsonFileSchemaLoader": JsonFileSchemaLoader, "ConstantBackoffStrategy": ConstantBackoffStrategy,
    "ExponentialBackoffStrategy": ExponentialBackoffStrategy, "WaitTimeFromHeader": WaitTimeFromHeaderBackoffStrategy,
    "RecordSelector": RecordSelector, "RecordFilter": RecordFilter,
}
_BY_HOST = {
    "BearerAuthenticator": BearerAuthenticator, "ApiKeyAuthenticator": ApiKeyAuthenticator,
    "OAuthAuthenticator": _FixedOauth2Authenticator,
}


def _load(sources, config):
    global _config
    _config = config
    files.keep_files(sources)


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
    if type_name == "HttpResponseFilter":
        return HttpResponseFilter(**{name: value for name, value in node.items() if name != "type"})
    if type_name == "HttpRequester":
        return DeclaredRequester(node)
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
    module, _, name = node["class_name"].rpartition(".")
    kind = getattr(importlib.import_module(_module_of(module)), name)
    hints = typing.get_type_hints(kind)
    parameters = node.get("$parameters", {})
    given = {"name": parameters.get("name", ""), **node, "config": _config, "parameters": parameters}
    if issubclass(kind, SimpleRetriever):
        own = {"requester": ServiceRequester(), "record_selector": ServiceSelector(), "paginator": ServicePaginator()}
        given = {**given, **own}
    plain = ("config", "parameters")
    values = {
        name: given[name] if name in plain else _build(given[name], hint)
        for name, hint in hints.items()
        if name in given
    }
    one = kind(**values)
    if isinstance(one, DeclarativeSingleUseRefreshTokenOauth2Authenticator):
        one._component = {name: value for name, value in node.items() if name != "class_name"}
    return one


def _module_of(name):
    """Classes of a single file may stand under any name."""
    own = files.path_of(name)
    return name if own == "" or files.source_file(own) or not files.is_source("components.py") else "components"


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
    return wire_of(one(request))


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


def _request(one, options, known):
    """The number of the response to go on with."""
    options["stream_slice"] = _slice(known)
    response = requesters.for_requester(one, options)
    return None if response is None else response.seen["number"]


def _interpret(one, response):
    found = one.interpret_response(Response(response))
    failure = found.failure_type and found.failure_type.value
    return {"action": found.response_action.value, "failure": failure, "message": found.error_message}


def _backoff(one, response, attempt):
    seen = Response(response) if response else RequestsConnectionError("There was no response")
    return one.backoff_time(seen, attempt)


def _options(one, known, stream_state, next_page_token):
    scope = {"stream_state": stream_state, "stream_slice": _slice(known), "next_page_token": next_page_token}
    kinds = {"request_parameter": "params", "header": "headers", "body_data": "body_data", "body_json": "body_json"}
    return {kind: getattr(one, f"get_request_{name}")(**scope) or {} for kind, name in kinds.items()}


def _schema(one):
    return one.get_json_schema()


_PAGE = 1000


def _read(one, known, stream_state, initial):
    """The records of a slice, which the service takes as they come."""
    one.state, one.paginator.initial = stream_state, initial
    records = []
    for record in one.read_records(records_schema={}, stream_slice=_slice(known)):
        records.append(record)
        if len(records) == _PAGE:
            ask("emit", records)
            records = []
    ask("emit", records)


def _normalize(one, records, schema):
    for record in records:
        one.transform(record, schema)
    return records


_CALLS = {
    "request": _request, "interpret": _interpret, "backoff": _backoff, "options": _options, "schema": _schema,
    "read": _read, "normalize": _normalize,
    "extract": _extract, "transform": _transform, "filter": _filter, "sign": _sign, "slices": _slices,
    "paging": _paging, "next_page": _next_page,
}


def _place(error):
    """Class and line of the innermost frame in the components."""
    found, trace = {}, error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if files.is_source(code.co_filename):
            found = {"file": code.co_filename, "line": trace.tb_lineno, "function": code.co_qualname}
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        found = {"file": error.filename, "line": error.lineno, "function": "the file"}
    return found


def dispatch(text):
    forget_exact_numbers()
    return _run(text)


def _run_inside(text):
    """While another call waits for the service."""
    with requesters.outside_of_requester():
        return _run(text)


def _run(text):
    try:
        call = json.loads(text, parse_float=exact_number)
        if "files" in call:
            return dump({"value": _load(call["files"], call["config"])})
        one = _instance(call["number"], call["component"])
        return dump({"value": _CALLS[call["call"]](one, *call["args"])})
    except HostError as error:
        return json.dumps({"host": error.args[0]})
    except BaseException as error:
        what = {"type": type(error).__name__, "message": str(error)[:2000], **_place(error)}
        return json.dumps({"error": what})


def close(call):
    """From now on `call` is the service, and nothing else leads out."""
    from base import host

    host._host, host._run = call, _run_inside
    modules.close()
    time.sleep = lambda seconds: ask("sleep", seconds)
    random = sys.modules.get("random")
    if random:
        random.seed()
