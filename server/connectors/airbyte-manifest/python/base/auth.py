"""Airbyte's CDK: authenticators."""

import base64, datetime
from dataclasses import InitVar, dataclass
from typing import Any, List, Mapping, Optional, Union

from base.host import ask
from base.interpolation import Config, InterpolatedString
from base.times import AirbyteDateTime, DatetimeParser, ab_datetime_now, ab_datetime_parse
from base.web import AuthBase, PreparedRequest, RequestException, Session, wire_of

# Nothing is sent there.
PROBE = "http://probe.invalid/"


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
        signed = ask("sign", self.component, wire_of(request))
        request.url, request.body = signed["url"], signed["body"]
        request.headers.clear()
        request.headers.update(signed["headers"])
        return request

    def get_auth_header(self):
        probe = self(PreparedRequest("GET", PROBE))
        return dict(probe.headers.items())

    auth_header = property(lambda self: next(iter(self.get_auth_header()), ""))
    token = property(lambda self: next(iter(self.get_auth_header().values()), ""))


class BearerAuthenticator(_FixedAuthenticator):
    """Of the manifest, or with a token of the component."""

    def __init__(self, token_provider=None, config=None, parameters=None, *, component=None):
        super().__init__(component)
        self.token_provider = token_provider

    def __call__(self, request):
        return AbstractHeaderAuthenticator.__call__(self, request) if self.token_provider else super().__call__(request)

    def get_auth_header(self):
        if self.token_provider is None:
            return super().get_auth_header()
        return {"Authorization": f"Bearer {self.token_provider.get_token()}"}


class ApiKeyAuthenticator(_FixedAuthenticator):
    pass


class _FixedOauth2Authenticator(_FixedAuthenticator):
    pass


class DefaultBackoffException(RequestException):
    pass


@dataclass
class DeclarativeOauth2Authenticator(DeclarativeAuthenticator):
    """A base class: components change how tokens are requested."""

    config: Config
    parameters: InitVar[Mapping[str, Any]]
    client_id: Optional[Union[InterpolatedString, str]] = None
    client_secret: Optional[Union[InterpolatedString, str]] = None
    token_refresh_endpoint: Optional[Union[InterpolatedString, str]] = None
    refresh_token: Optional[Union[InterpolatedString, str]] = None
    scopes: Optional[List[str]] = None
    token_expiry_date: Optional[Union[InterpolatedString, str]] = None
    token_expiry_date_format: Optional[str] = None
    token_expiry_is_time_of_expiration: bool = False
    access_token_name: Union[InterpolatedString, str] = "access_token"
    access_token_value: Optional[Union[InterpolatedString, str]] = None
    client_id_name: Union[InterpolatedString, str] = "client_id"
    client_secret_name: Union[InterpolatedString, str] = "client_secret"
    expires_in_name: Union[InterpolatedString, str] = "expires_in"
    refresh_token_name: Union[InterpolatedString, str] = "refresh_token"
    refresh_request_body: Optional[Mapping[str, Any]] = None
    refresh_request_headers: Optional[Mapping[str, Any]] = None
    grant_type_name: Union[InterpolatedString, str] = "grant_type"
    grant_type: Union[InterpolatedString, str] = "refresh_token"

    def __post_init__(self, parameters):
        self._parameters = parameters
        self._access_token = self._text(self.access_token_value)
        self._expires = None
        given = self._text(self.token_expiry_date)
        if given:
            self._expires = self._moment(given)
        if self.get_grant_type() == "refresh_token" and self.refresh_token is None and self.token_refresh_endpoint:
            raise ValueError("OAuthAuthenticator needs a refresh_token parameter if grant_type is set to `refresh_token`")

    def _text(self, value):
        return InterpolatedString.create(value, parameters=self._parameters).eval(self.config) if value else value

    def _map(self, values):
        return {self._text(name): self._text(value) for name, value in (values or {}).items()}

    def _moment(self, value):
        if self.token_expiry_is_time_of_expiration and self.token_expiry_date_format:
            return AirbyteDateTime.from_datetime(DatetimeParser().parse(value, self.token_expiry_date_format))
        if isinstance(value, datetime.datetime):
            return AirbyteDateTime.from_datetime(value)
        if isinstance(value, (int, float)) or str(value).replace(".", "", 1).isdigit():
            return AirbyteDateTime.from_datetime(ab_datetime_now() + datetime.timedelta(seconds=int(float(value))))
        return ab_datetime_parse(str(value))

    get_token_refresh_endpoint = lambda self: self._text(self.token_refresh_endpoint)
    get_client_id_name = lambda self: self._text(self.client_id_name)
    get_client_id = lambda self: self._text(self.client_id)
    get_client_secret_name = lambda self: self._text(self.client_secret_name)
    get_client_secret = lambda self: self._text(self.client_secret) or ""
    get_refresh_token_name = lambda self: self._text(self.refresh_token_name)
    get_refresh_token = lambda self: self._text(self.refresh_token)
    get_scopes = lambda self: self.scopes or []
    get_access_token_name = lambda self: self._text(self.access_token_name)
    get_expires_in_name = lambda self: self._text(self.expires_in_name)
    get_grant_type_name = lambda self: self._text(self.grant_type_name)
    get_grant_type = lambda self: self._text(self.grant_type)
    get_refresh_request_body = lambda self: self._map(self.refresh_request_body)
    get_refresh_request_headers = lambda self: self._map(self.refresh_request_headers)
    get_token_expiry_date = lambda self: self._expires or AirbyteDateTime(1970, 1, 1)
    auth_header = property(lambda self: "Authorization")
    token = property(lambda self: f"Bearer {self.get_access_token()}")

    def set_token_expiry_date(self, value):
        self._expires = self._moment(value)

    @property
    def access_token(self):
        if self._access_token is None:
            raise ValueError("access_token is not set")
        return self._access_token

    @access_token.setter
    def access_token(self, value):
        self._access_token = value

    def get_auth_header(self):
        return {"Authorization": f"Bearer {self.get_access_token()}"}

    def token_has_expired(self):
        return self._access_token is None or ab_datetime_now() > self.get_token_expiry_date()

    def get_access_token(self):
        if self.get_token_refresh_endpoint() is None and self._access_token is not None:
            return self._access_token
        if self.token_has_expired():
            token, expires = self.refresh_access_token()
            self.access_token = token
            self.set_token_expiry_date(expires)
        return self.access_token

    def refresh_access_token(self):
        response = self._get_refresh_access_token_response()
        token = response.get(self.get_access_token_name())
        if not token:
            raise ValueError(f"Token refresh API response was missing access token {self.get_access_token_name()}")
        expires = response.get(self.get_expires_in_name())
        return token, expires if expires is not None else 3600

    def build_refresh_request_body(self):
        headers = self.build_refresh_request_headers() or {}
        body = {self.get_grant_type_name(): self.get_grant_type()}
        if "Authorization" not in headers:
            body[self.get_client_id_name()] = self.get_client_id()
            body[self.get_client_secret_name()] = self.get_client_secret()
        if self.refresh_token is not None:
            body[self.get_refresh_token_name()] = self.get_refresh_token()
        if self.get_scopes():
            body["scopes"] = self.get_scopes()
        more = {name: value for name, value in self.get_refresh_request_body().items() if name not in body}
        return {**body, **more}

    def build_refresh_request_headers(self):
        return self.get_refresh_request_headers() or None

    def _get_refresh_access_token_response(self):
        headers = self.build_refresh_request_headers()
        body = self.build_refresh_request_body()
        is_json = "json" in str((headers or {}).get("Content-Type", ""))
        content = {"json": body} if is_json else {"data": body}
        response = Session().request("POST", self.get_token_refresh_endpoint(), headers=headers, **content)
        response.raise_for_status()
        return response.json()

    _make_handled_request = lambda self: self._get_refresh_access_token_response()
    _wrap_refresh_token_exception = lambda self, exception: False
    _log_response = lambda self, response: None


class DeclarativeSingleUseRefreshTokenOauth2Authenticator(DeclarativeAuthenticator):
    """The service requests the token, since it also keeps the refresh token that each request replaces."""

    _component = {}

    def get_access_token(self):
        own = ("token_refresh_endpoint", "client_id", "client_secret", "grant_type")
        given = {name: getattr(self, name) for name in own if isinstance(getattr(self, name, None), str)}
        updater = {"refresh_token_updater": {}, **self._component, **given}
        signed = ask("sign", {**updater, "type": "OAuthAuthenticator"}, wire_of(PreparedRequest("GET", PROBE)))
        return signed["headers"]["authorization"].removeprefix("Bearer ")

    auth_header = property(lambda self: "Authorization")
    token = property(lambda self: f"Bearer {self.get_access_token()}")
