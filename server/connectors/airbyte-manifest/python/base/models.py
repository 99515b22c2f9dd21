"""Airbyte's CDK: enumerations and errors."""

import enum


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


class AirbyteTracedException(Exception):
    def __init__(self, internal_message=None, message=None, failure_type=None, exception=None, **_):
        super().__init__(message or internal_message)
        self.failure_type = failure_type
        self.message, self.internal_message = message, internal_message
