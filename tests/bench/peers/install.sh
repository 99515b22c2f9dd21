#!/usr/bin/env bash
# Installs the peers of `tests/bench/peers.ts` below a folder: `bash tests/bench/peers/install.sh FOLDER`.
# Needs Python 3.11 with venv, and Debian's packages pgloader and pgcopydb for these two.
set -euo pipefail
folder=$(mkdir -p "$1" && cd "$1" && pwd)

venv() {
  local name=$1
  shift
  python3 -m venv "$folder/$name"
  "$folder/$name/bin/pip" install --quiet --disable-pip-version-check "$@"
}

venv dlt 'dlt[postgres,filesystem,parquet]==1.31.0' sqlalchemy==2.0.43 pyarrow pymysql
# Later versions are a program that is downloaded at the first start.
venv ingestr ingestr==0.15.9
# The newest version of which the registry holds the program itself.
venv sling sling-linux-amd64==1.4.11 duckdb-cli==1.4.4
chmod +x "$folder/sling/bin/duckdb" "$folder"/sling/lib/python3*/site-packages/sling_linux_amd64/bin/sling-linux-amd64
ln -sf "$folder"/sling/lib/python3*/site-packages/sling_linux_amd64/bin/sling-linux-amd64 "$folder/sling/bin/sling"
venv airbyte airbyte==0.71.3 pymysql pyarrow
