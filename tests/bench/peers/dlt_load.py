"""One table or file into PostgreSQL by dlt: dlt_load.py sql|csv|parquet SOURCE DESTINATION TABLE.

Arrow tables all the way, and CSV to PostgreSQL's COPY: the fastest of dlt's documented ways.
"""

import sys

import dlt
from dlt.sources.filesystem import filesystem, read_parquet
from dlt.sources.sql_database import sql_table

CHUNK = 50_000

kind, source, destination, table = sys.argv[1:]
if kind == "sql":
    rows = sql_table(source, "events", backend="pyarrow", chunk_size=CHUNK, reflection_level="full_with_precision")
elif kind == "parquet":
    rows = (filesystem(bucket_url="file:///", file_glob=source.lstrip("/")) | read_parquet(chunksize=CHUNK, use_pyarrow=True)).with_name(table)
else:
    import pyarrow.csv

    @dlt.resource(name=table)
    def rows():
        with pyarrow.csv.open_csv(source) as reader:
            for batch in reader:
                yield pyarrow.Table.from_batches([batch])

pipeline = dlt.pipeline("peer", destination=dlt.destinations.postgres(destination), dataset_name="public")
info = pipeline.run(rows, table_name=table, write_disposition="replace", loader_file_format="csv")
info.raise_on_failed_jobs()
