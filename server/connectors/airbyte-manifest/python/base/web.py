"""The library requests, as far as components use it."""

import base64, collections.abc, http, json, re, urllib.parse

from base.host import ask, exact_number


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


class Request:
    def __init__(self, method=None, url=None, headers=None, data=None, params=None, json=None, auth=None):
        self.method, self.url, self.headers, self.auth = method, url, headers or {}, auth
        self.data, self.params, self.json = data, params, json

    def prepare(self):
        prepared = Session().prepare_request(self)
        return self.auth(prepared) if self.auth else prepared


class Response:
    def __init__(self, seen, request=None):
        self.seen = seen
        self.status_code = seen["status"]
        self.headers = CaseInsensitiveDict(seen["headers"])
        self.text = seen["text"]
        self.url = seen["url"]
        self.request = request or PreparedRequest("GET", seen["url"])
        self.encoding = "utf-8"

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
            return json.loads(self.text, parse_float=exact_number)
        except json.JSONDecodeError as error:
            raise RequestsJSONDecodeError(error.msg, error.doc, error.pos)

    def iter_lines(self, decode_unicode=False, **_):
        for line in self.text.splitlines():
            yield line if decode_unicode else line.encode("utf-8")

    def iter_content(self, chunk_size=1, decode_unicode=False, **_):
        content = self.text if decode_unicode else self.content
        for at in range(0, len(content), chunk_size or 1):
            yield content[at : at + (chunk_size or 1)]

    @property
    def links(self):
        """Those of the header, by their relation."""
        found = {}
        for part in re.split(", *<", self.headers.get("link") or ""):
            url, *more = part.split(";")
            pairs = [one.partition("=")[::2] for one in more if "=" in one]
            link = {"url": url.strip("<> '\""), **{name.strip(" '\""): value.strip(" '\"") for name, value in pairs}}
            if link["url"]:
                found[link.get("rel") or link["url"]] = link
        return found

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
        reply = ask("request", wire_of(request))
        if "failed" in reply:
            raise RequestsConnectionError(reply["failed"], request=request)
        return Response(reply, request)

    def send(self, request, **_):
        return self._send(request)

    def prepare_request(self, request):
        prepared = _prepared(request.method, request.url, request.params, request.data, request.json)
        prepared.headers.update({**self.headers, **(request.headers or {})})
        return prepared

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


def wire_of(request):
    body = request.body
    if isinstance(body, bytes):
        body = body.decode("utf-8")
    headers = {key: str(value) for key, value in request.headers.items() if value is not None}
    return {"method": request.method, "url": request.url, "headers": headers, "body": body}


def once(method):
    return lambda url, **more: Session().request(method, url, **more)


def post(url, data=None, json=None, **more):
    return Session().post(url, data=data, json=json, **more)
