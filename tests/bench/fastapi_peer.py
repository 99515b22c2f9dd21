"""The other peer of tests/bench/api.ts: FastAPI on uvicorn (uvloop, httptools) with asyncpg, as its documentation writes
an application. Started by it: `python3 fastapi_peer.py PLAN`; prints its port.

What it does as the service does: one process with ten connections to the database; the very statements of the service,
prepared, with the look-up of the key before the body is checked, and a create in one transaction; pages of the same size;
JSON bodies checked by a typed model, refused with 422 and the place of each mistake; answers checked by a model.

What it does in its own way: one connection for a request, by a dependency; statements of a request one after the other,
since asyncpg cannot send the next before the answer; answers checked and written by pydantic itself, which FastAPI does
since 0.130. asyncpg resets a connection that is given back by a statement of its own: that is turned off, because neither
the service nor the bare Elysia app sends one.

What it leaves out: the HMAC of the key, permissions, request ids, idempotency keys, the catalog of the source, the check
of streams and schedules, cookies and sessions. So it is a floor: an application with these would take longer.
"""

import contextlib
import datetime
import json
import socket
import sys
import uuid
from typing import Annotated, Any, Dict, List, Optional

import asyncpg
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

PLAN = json.load(open(sys.argv[1]))
ISO = "%Y-%m-%dT%H:%M:%S.%f%z"


class Side(BaseModel):
    id: uuid.UUID
    name: str
    connector_name: str
    status: str


class Person(BaseModel):
    id: uuid.UUID
    name: str
    email: str


class LastRun(BaseModel):
    id: str
    status: str
    started_at: Optional[str]
    finished_at: Optional[str]
    rows_loaded: int


class Stream(BaseModel):
    id: str
    name: str
    namespace: Optional[str]
    selected: bool
    sync_mode: str
    destination_sync_mode: str
    cursor_field: Optional[List[str]]
    primary_key: Optional[List[List[str]]]
    destination_table: Optional[str]
    shared_destination_table: bool
    backfill_days: Optional[int]
    fields_: List[Any] = Field(alias="fields")
    filters: List[Any]
    dataset_sql: Optional[str]
    mapping: Optional[List[Any]]
    cursor_value: Optional[str]
    cursor_updated_at: Optional[str]
    row_count_last_run: Optional[int]
    fresh_at: Optional[str]
    parked: Optional[Dict[str, Any]]


class Connection(BaseModel):
    id: uuid.UUID
    account_id: uuid.UUID
    name: str
    description: Optional[str]
    kind: str
    source_id: uuid.UUID
    destination_id: uuid.UUID
    source: Side
    destination: Side
    status: str
    status_reason: Optional[str]
    schedule: Dict[str, Any]
    backfill_days: int
    start_date: Optional[str]
    destination_schema: Optional[str]
    table_prefix: str
    streams: List[Stream]
    schema_change_policy: str
    schema_change_status: str
    catalog_refreshed_at: Optional[datetime.datetime]
    consistency: str
    inexact_values: str
    rejected_rows_policy: str
    max_rejected_rows: int
    max_parallel_streams: int
    notify_on_failure: bool
    tags: List[str]
    folder: Optional[str]
    owner: Optional[str]
    last_run: Optional[LastRun]
    active_run_id: Optional[uuid.UUID]
    log_lag: Optional[Dict[str, Any]]
    next_run_at: Optional[datetime.datetime]
    last_succeeded_at: Optional[datetime.datetime]
    last_failed_at: Optional[datetime.datetime]
    consecutive_failures: int
    created_by: Optional[Person]
    updated_by: Optional[Person]
    created_at: datetime.datetime
    updated_at: datetime.datetime
    revision: int


class CreateConnection(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=255)
    source_id: uuid.UUID
    destination_id: uuid.UUID
    description: Optional[str] = Field(default=None, max_length=2000)
    table_prefix: str = ""
    tags: List[str] = []
    status: str = "active"


own_columns = None


@contextlib.asynccontextmanager
async def lifespan(app):
    settings = {"min_size": 10, "max_size": 10, "init": prepare_types, "reset": keep_session}
    async with asyncpg.create_pool(PLAN["url"], **settings) as pool:
        app.state.pool = pool
        yield


async def keep_session(connection):
    """Instead of asyncpg's statement."""


async def prepare_types(connection):
    for name in ("json", "jsonb"):
        await connection.set_type_codec(name, encoder=lambda text: text, decoder=json.loads, schema="pg_catalog")


def adapted(value, kind):
    """asyncpg takes values of Python's types where postgres.js takes text."""
    if value is None or not isinstance(value, str):
        return value
    if kind in ("timestamptz", "timestamp"):
        return datetime.datetime.strptime(value.replace("Z", "+0000"), ISO)
    if kind.startswith(("int", "float")):
        return int(value)
    if kind == "bool":
        return value == "true"
    if kind.endswith("[]"):
        return [one for one in value.strip("{}").split(",") if one]
    return value


async def send(connection, statement, values=None):
    # Asked once: fetch() keeps prepared statements by itself.
    if "kinds" not in statement:
        prepared = await connection.prepare(statement["text"])
        statement["kinds"] = [kind.name for kind in prepared.get_parameters()]
    given = statement["values"] if values is None else values
    kinds = statement["kinds"]
    return await connection.fetch(statement["text"], *[adapted(value, kind) for value, kind in zip(given, kinds)])


def shown(row):
    """The columns of the connection by name, the rest by place: names repeat."""
    global own_columns
    names = list(row.keys())
    if own_columns is None:
        own_columns = names.index("id", 1)
    made = dict(zip(names[:own_columns], row[:own_columns]))
    rest = row[own_columns:]
    side = ("id", "name", "connector_name", "status", "parameters")
    person = ("id", "name", "email")
    made["source"] = dict(zip(side, rest[0:5]))
    made["destination"] = dict(zip(side, rest[5:10]))
    made["created_by"] = dict(zip(person, rest[10:13])) if rest[10] else None
    made["updated_by"] = dict(zip(person, rest[13:16])) if rest[13] else None
    made["streams"], made["last_run"], made["active_run_id"], made["log_lag"] = rest[16:20]
    return made


async def connected(request: Request):
    async with request.app.state.pool.acquire() as connection:
        yield connection


Connected = Annotated[asyncpg.Connection, Depends(connected)]
Key = Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]


async def authenticated(connection: Connected, key: Key):
    rows = await send(connection, PLAN["one"][0])
    if not rows:
        raise HTTPException(401, "Not a valid API key")


# The key is looked up before the body is checked, as in the service.
app = FastAPI(lifespan=lifespan, dependencies=[Depends(authenticated)])


@app.get("/connections/{id}")
async def one(id: uuid.UUID, connection: Connected) -> Connection:
    return shown((await send(connection, PLAN["one"][1]))[0])


@app.get("/connections")
async def many(connection: Connected, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> List[Connection]:
    for statement in PLAN["list"][1:]:
        rows = await send(connection, statement)
        if statement["answers"]:
            answer = [shown(row) for row in rows]
    return answer


def renewed(statement, ids, name):
    values = list(statement["values"])
    for place, number in statement["fresh"].items():
        values[int(place)] = ids.setdefault(number, str(uuid.uuid4()))
    for place in statement["names"]:
        values[place] = name
    return values


@app.post("/connections", status_code=201)
async def create(body: CreateConnection, connection: Connected) -> Connection:
    ids = {}
    async with connection.transaction():
        for statement in PLAN["create"][1:]:
            rows = await send(connection, statement, renewed(statement, ids, body.name))
            if statement["answers"]:
                answer = shown(rows[0])
    return answer


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="error", access_log=False)
uvicorn.Server(config).run(sockets=[listener])
