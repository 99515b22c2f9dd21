from abc import ABC
from dataclasses import dataclass

import jwt
import pendulum
from dateutil.parser import parse
from isodate import parse_duration

from airbyte_cdk.sources.declarative.schema import JsonFileSchemaLoader
from airbyte_cdk.sources.declarative.migrations.state_migration import StateMigration
from airbyte_cdk.sources.declarative.transformations import RecordTransformation
from airbyte_cdk.utils.datetime_helpers import ab_datetime_parse


class Unused(StateMigration, ABC):
    """What it extends does not exist here, and nothing uses it."""


@dataclass
class ShopSchema(JsonFileSchemaLoader):
    def get_json_schema(self):
        schema = super().get_json_schema()
        schema["properties"]["token"] = {"type": "string"}
        return schema


class Times(RecordTransformation):
    def transform(self, record, config=None, stream_state=None, stream_slice=None):
        at = pendulum.from_format(record["at"], "ddd, D MMM YYYY HH:mm:ss ZZ")
        record["at"] = at.to_rfc3339_string()
        record["seen"] = "|".join(
            [
                str(at),
                at.add(months=1, days=-1).format("YYYY-MM-DD[T]H:mm"),
                str(parse_duration("P1DT2H")),
                parse("2024-01-02 03:04:05+0100").isoformat(),
                str(ab_datetime_parse(1678806000)),
            ]
        )
        record["token"] = jwt.encode({"iss": "shop"}, "secret", algorithm="HS256")
