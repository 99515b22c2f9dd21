import base64
from dataclasses import dataclass

import backoff
import requests

from airbyte_cdk.sources.declarative.auth import DeclarativeOauth2Authenticator
from airbyte_cdk.sources.streams.http.exceptions import DefaultBackoffException

from ..shared import logger


@dataclass
class ShopAuthenticator(DeclarativeOauth2Authenticator):
    """The token endpoint wants the client in a header, and may be unavailable at first."""

    def get_refresh_request_headers(self):
        pair = base64.b64encode(f"{self.get_client_id()}:{self.get_client_secret()}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}

    @backoff.on_exception(
        backoff.constant,
        DefaultBackoffException,
        interval=0.01,
        max_tries=3,
        jitter=None,
        on_backoff=lambda details: logger.info(f"{details['tries']} tries"),
    )
    def _make_handled_request(self):
        try:
            response = requests.post(
                self.get_token_refresh_endpoint(),
                headers=self.get_refresh_request_headers(),
                data=self.build_refresh_request_body(),
            )
            response.raise_for_status()
            return response.json()
        except requests.exceptions.RequestException as error:
            if error.response is not None and error.response.status_code >= 500:
                raise DefaultBackoffException(request=error.response.request, response=error.response)
            raise
