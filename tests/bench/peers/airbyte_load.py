"""One table or file into PostgreSQL by Airbyte's protocol: airbyte_load.py sql|csv|parquet SOURCE DESTINATION SCHEMA.

The source is a process that writes messages to its standard output; PyAirbyte reads them and loads PostgreSQL.
"""

import os
import stat
import sys
import tempfile
from urllib.parse import urlparse

import airbyte as ab
from airbyte.caches import PostgresCache

COLUMNS = {
    "id": "integer", "kind": "integer", "note": "string", "amount": "number", "happened": "string",
    "payload": "string", "flag": "boolean", "score": "number",
}

kind, source, destination, schema = sys.argv[1:]
folder = tempfile.mkdtemp()
program = os.path.join(folder, "source-events")
with open(program, "w") as file:
    here = os.path.dirname(os.path.abspath(__file__))
    file.write(f'#!/bin/sh\nexec {sys.executable} {here}/airbyte_source.py "$@"\n')
os.chmod(program, stat.S_IRWXU)
properties = {name: {"type": ["null", type_]} for name, type_ in COLUMNS.items()}
url = urlparse(destination)
cache = PostgresCache(
    host=url.hostname, port=url.port, username=url.username, password=url.password,
    database=url.path.lstrip("/"), schema_name=schema,
)
reader = ab.get_source(
    "source-events",
    config={"kind": kind, "source": source, "properties": properties},
    local_executable=program,
    streams="*",
)
reader.read(cache=cache, force_full_refresh=True)
