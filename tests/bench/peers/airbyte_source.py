"""A source of Airbyte's protocol, by its Python CDK: the table `events` of a database, or a CSV or Parquet file."""

import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from airbyte_cdk.entrypoint import launch
from airbyte_cdk.models import ConnectorSpecification
from airbyte_cdk.sources import AbstractSource
from airbyte_cdk.sources.streams import Stream

CHUNK = 10_000


def batches(config: Mapping[str, Any]):
    kind, place = config["kind"], config["source"]
    if kind == "sql":
        import sqlalchemy

        engine = sqlalchemy.create_engine(place)
        with engine.connect().execution_options(stream_results=True, max_row_buffer=CHUNK) as connection:
            for rows in connection.execute(sqlalchemy.text("select * from events")).mappings().partitions(CHUNK):
                yield [dict(row) for row in rows]
    elif kind == "csv":
        import pyarrow.csv

        for batch in pyarrow.csv.open_csv(place):
            yield batch.to_pylist()
    else:
        import pyarrow.parquet

        for batch in pyarrow.parquet.ParquetFile(place).iter_batches(CHUNK):
            yield batch.to_pylist()


def plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (dict, list)):
        return value
    if isinstance(value, Decimal):
        return float(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


class Events(Stream):
    name = "events"
    primary_key = "id"

    def __init__(self, config: Mapping[str, Any]):
        self.config = config

    def get_json_schema(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": self.config["properties"]}

    def read_records(self, *_: Any, **__: Any) -> Iterable[Mapping[str, Any]]:
        for rows in batches(self.config):
            for row in rows:
                yield {name: plain(value) for name, value in row.items()}


class SourceEvents(AbstractSource):
    def spec(self, logger: Any) -> ConnectorSpecification:
        return ConnectorSpecification(connectionSpecification={"type": "object", "properties": {}})

    def check_connection(self, logger: Any, config: Mapping[str, Any]):
        return True, None

    def streams(self, config: Mapping[str, Any]) -> list[Stream]:
        return [Events(config)]


if __name__ == "__main__":
    launch(SourceEvents(), sys.argv[1:])
