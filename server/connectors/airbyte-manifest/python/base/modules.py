"""The modules that components import: those of this package under their usual names, and none that lead out."""

import abc, importlib.machinery, sys, types

from base import auth, files, incremental, interpolation, libraries, models, normalization, paths, records, requesters
from base import retrievers, schemas, streams, times, web

BLOCKED = {"js", "pyodide_js", "pyodide", "_pyodide", "_pyodide_core", "ctypes", "_ctypes", "micropip", "webbrowser"}


def _module(name, members):
    module = types.ModuleType(name)
    module.__path__ = []
    module.__dict__.update(members)
    return module


def _verb(name):
    return web.once(name.upper())


_EXCEPTIONS = {
    "RequestException": web.RequestException, "HTTPError": web.HTTPError, "ConnectionError": web.RequestsConnectionError,
    "Timeout": web.Timeout, "InvalidURL": web.InvalidURL, "JSONDecodeError": web.RequestsJSONDecodeError,
}
_DPATH = {
    "get": paths.dpath_get, "values": paths.dpath_values, "new": paths.dpath_new, "set": paths.dpath_set,
    "search": paths.dpath_search,
}
_AUTH = {"AuthBase": web.AuthBase, "HTTPBasicAuth": web.HTTPBasicAuth}
_MODELS = {"Response": web.Response, "PreparedRequest": web.PreparedRequest, "Request": web.Request}
_PENDULUM_ERRORS = {"ParserError": times.ParserError}
_MODULES = {
    "requests": {
        **_EXCEPTIONS, **_MODELS, "Session": web.Session, "post": web.post, "session": web.Session,
        "request": lambda method, url, **more: web.Session().request(method, url, **more),
        **{name: _verb(name) for name in ("get", "put", "patch", "delete")},
        "exceptions": _module("requests.exceptions", _EXCEPTIONS), "auth": _module("requests.auth", _AUTH),
        "models": _module("requests.models", _MODELS),
    },
    "requests.exceptions": _EXCEPTIONS,
    "requests.auth": _AUTH,
    "requests.models": _MODELS,
    "requests_cache": {"Response": web.Response},
    "dpath": {**_DPATH, "util": _module("dpath.util", _DPATH)},
    "dpath.util": _DPATH,
    "pendulum": {
        **times.PENDULUM,
        "parsing": _module("pendulum.parsing", {"exceptions": _module("pendulum.parsing.exceptions", _PENDULUM_ERRORS)}),
    },
    "pendulum.parsing.exceptions": _PENDULUM_ERRORS,
    "isodate": {"parse_duration": times.parse_duration, "Duration": times.Duration},
    "dateutil": {"parser": _module("dateutil.parser", {"parse": times.dateutil_parse})},
    "dateutil.parser": {"parse": times.dateutil_parse},
    "pytz": {"UTC": times.UTC, "utc": times.UTC},
    "jwt": {"encode": libraries.jwt_encode},
    "yaml": {"safe_load": libraries.yaml_load},
    "backoff": {"on_exception": libraries.on_exception, "expo": libraries.expo, "constant": libraries.constant},
    "pkgutil": {"get_data": files.get_data},
}
_HIDDEN = {"RequestsConnectionError", "RequestsJSONDecodeError"}
_AIRBYTE = {
    name: value
    for room in (models, interpolation, records, auth, streams, requesters, normalization, incremental, retrievers, schemas, times, web)
    for name, value in vars(room).items()
    if not name.startswith("_") and name not in _HIDDEN and getattr(value, "__module__", "") == room.__name__
} | {
    **{name: getattr(interpolation, name) for name in ("Config", "Record", "StreamState", "FieldPointer")},
    "StreamData": retrievers.StreamData,
    **requesters.CONSTANTS,
}

_importing = 0


class _Missing(abc.ABCMeta):
    """What the sandbox does not have. A class that uses it is refused before it runs."""

    def __call__(cls, *_, **__):
        # At the top of a file: what comes of it is refused once something uses it.
        if _importing:
            return cls
        raise NotImplementedError(f"{cls.__name__} is not available to components")

    def __getattr__(cls, name):
        if _importing and not name.startswith("__"):
            return _missing(name)
        raise AttributeError(f"{cls.__name__} is not available to components")


def _missing(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Missing(name, (), {})


def _of_package(module):
    """The file of the package itself starts the connector, so it is read only for a name that it may have."""

    def find(name):
        if not name.startswith("__") and not module.__dict__.get("_read"):
            module._read = True
            _execute(module, "__init__.py")
            if name in module.__dict__:
                return module.__dict__[name]
        return _missing(name)

    return find


def _execute(module, name):
    global _importing
    _importing += 1
    try:
        if files.is_source(name):
            exec(compile(files.text_of(name), name, "exec"), module.__dict__)
    finally:
        _importing -= 1


class _Finder:
    """Imports the modules of this package and the files of the connector."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        root = name.partition(".")[0]
        if root in BLOCKED:
            raise ImportError(f"{name} is not available to components")
        if name in _MODULES or root == "airbyte_cdk" or root.startswith("source_"):
            return importlib.machinery.ModuleSpec(name, _Finder, is_package=True)
        own = files.path_of(name)
        if files.source_file(own) or (own and files.is_folder(own)):
            return importlib.machinery.ModuleSpec(name, _Finder, is_package=True)
        return None

    @staticmethod
    def find_missing(name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, _Finder, is_package=True)

    @staticmethod
    def create_module(spec):
        module = _module(spec.name, _MODULES.get(spec.name, _AIRBYTE if spec.name.startswith("airbyte_cdk") else {}))
        is_package = spec.name.startswith("source_") and "." not in spec.name
        module.__getattr__ = _of_package(module) if is_package else _missing
        return module

    @staticmethod
    def exec_module(module):
        if module.__name__ in _MODULES or module.__name__.startswith("airbyte_cdk"):
            return
        own = files.path_of(module.__name__)
        found = files.source_file(own) if own else None
        if found is None:
            return
        name, is_package = found
        if not is_package:
            module.__package__ = module.__name__.rpartition(".")[0]
        _execute(module, name)


def close():
    """Before any code of a component runs: no way to the engine that runs Python."""
    for name in list(sys.modules):
        if name.partition(".")[0] in BLOCKED:
            del sys.modules[name]
    sys.modules.pop("pkgutil", None)
    foreign = lambda one: "pyodide" in type(one).__module__ or "js" in type(one).__name__.lower()
    sys.meta_path[:] = [one for one in sys.meta_path if not foreign(one)]
    sys.meta_path.insert(0, _Finder)
    sys.meta_path.append(types.SimpleNamespace(find_spec=_Finder.find_missing))
