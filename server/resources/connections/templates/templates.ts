import type { PipelineTemplateSchema } from './schema.ts';

type Side = PipelineTemplateSchema['source'];
type Schedule = PipelineTemplateSchema['connection']['schedule'];

const LOGIN = ['host', 'database', 'username', 'password'];
const BUCKET = ['bucket', 'region', 'access_key_id', 'secret_access_key'];

const every = (interval_minutes: 5 | 60): Schedule => ({ type: 'interval', interval_minutes, time_of_day: null });
const NIGHTLY: Schedule = { type: 'interval', interval_minutes: 1440, time_of_day: '02:00' };
const CONTINUOUS: Schedule = { type: 'continuous', interval_minutes: null, time_of_day: null };

const shop = (parameters: Side['parameters'] = {}): Side => ({
  connector_name: 'postgres',
  name: 'Shop',
  parameters,
  inputs: LOGIN,
});
const ANALYTICS: Side = { connector_name: 'postgres', name: 'Analytics', parameters: {}, inputs: LOGIN };

const NEEDS_TO_READ = 'A user of the source that may read its tables';
const NEEDS_TO_WRITE = 'A user of the destination that may create a schema and tables';
const NEEDS_BUCKET = 'A bucket, and an access key for it';

const API_DEFINITION = `base_url: https://api.example.com
authentication: { type: bearer, token: "{{ secrets.token }}" }
streams:
  - name: orders
    request:
      path: /orders
      query: { since: "{{ window.start }}", page: "{{ page.number }}" }
    records: data[]
    pagination: { type: page_number, start: 1 }
    primary_key: id
    incremental: { cursor_field: updated_at, start: "2026-01-01T00:00:00Z" }
`;

/** Common pipelines to start from. Everything in them can be changed. */
export const PIPELINE_TEMPLATES: readonly PipelineTemplateSchema[] = [
  {
    name: 'postgres-to-postgres-continuous',
    title: 'PostgreSQL to PostgreSQL, continuously',
    description: 'Follows the log of the source and applies each commit, deletes included, within seconds.',
    needs: [
      'wal_level = logical on the source server, which takes effect after a restart',
      'A user of the source that owns the tables and has REPLICATION',
      NEEDS_TO_WRITE,
    ],
    source: shop({ replication: 'logical' }),
    destination: ANALYTICS,
    connection: {
      name: 'Shop live',
      destination_schema: 'shop',
      schedule: CONTINUOUS,
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      streams: [],
    },
  },
  {
    name: 'postgres-to-postgres-nightly',
    title: 'PostgreSQL to PostgreSQL, every night',
    description: 'Replaces every table by what the source has at one moment.',
    needs: [NEEDS_TO_READ, NEEDS_TO_WRITE],
    source: shop(),
    destination: ANALYTICS,
    connection: {
      name: 'Shop nightly',
      destination_schema: 'shop',
      schedule: NIGHTLY,
      sync_mode: 'full_refresh',
      destination_sync_mode: 'overwrite',
      streams: [],
    },
  },
  {
    name: 'mysql-to-postgres-changes',
    title: 'MySQL or MariaDB to PostgreSQL, by binary log',
    description: 'Loads inserts, updates and deletes every five minutes without querying the tables again.',
    needs: [
      'A binary log with binlog_format = ROW and binlog_row_metadata = FULL; MySQL also needs gtid_mode = ON',
      'A user of the source with SELECT, REPLICATION SLAVE and, to see the state of the log, REPLICATION CLIENT or BINLOG MONITOR',
      NEEDS_TO_WRITE,
    ],
    source: { connector_name: 'mysql', name: 'Shop', parameters: { replication: 'logical' }, inputs: LOGIN },
    destination: ANALYTICS,
    connection: {
      name: 'Shop changes',
      destination_schema: 'shop',
      schedule: every(5),
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      streams: [],
    },
  },
  {
    name: 's3-files-to-postgres',
    title: 'Files in S3 to PostgreSQL',
    description: 'Appends the rows of new CSV, JSON Lines or Parquet files to one table every hour.',
    needs: [NEEDS_BUCKET, 'Files with the same columns below one path', NEEDS_TO_WRITE],
    source: {
      connector_name: 'file',
      name: 'Exports',
      parameters: { location: 's3', path: 'exports/*.csv', stream_name: 'exports' },
      inputs: BUCKET,
    },
    destination: ANALYTICS,
    connection: {
      name: 'Exports to analytics',
      destination_schema: 'files',
      schedule: every(60),
      sync_mode: 'incremental',
      destination_sync_mode: 'append',
      streams: [{ name: 'exports', sync_mode: 'incremental', destination_sync_mode: 'append' }],
    },
  },
  {
    name: 'postgres-to-parquet',
    title: 'PostgreSQL to Parquet files in S3',
    description: 'Writes every table as Parquet files each night, for DuckDB, Spark, Athena and the like.',
    needs: [NEEDS_TO_READ, NEEDS_BUCKET],
    source: shop(),
    destination: {
      connector_name: 'file',
      name: 'Lake',
      parameters: { location: 's3', path: 'shop', format: 'parquet' },
      inputs: BUCKET,
    },
    connection: {
      name: 'Shop to lake',
      destination_schema: null,
      schedule: NIGHTLY,
      sync_mode: 'full_refresh',
      destination_sync_mode: 'overwrite',
      streams: [],
    },
  },
  {
    name: 'rest-api-to-postgres',
    title: 'REST API to PostgreSQL',
    description: 'Reads new and changed records of a JSON API page by page every hour.',
    needs: [
      'The address of the API and a token',
      'The name of its list, its pages and its time of change',
      NEEDS_TO_WRITE,
    ],
    source: {
      connector_name: 'http_api',
      name: 'Shop API',
      parameters: { definition: API_DEFINITION },
      inputs: ['secrets.token'],
    },
    destination: ANALYTICS,
    connection: {
      name: 'API to analytics',
      destination_schema: 'api',
      schedule: every(60),
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      streams: [{ name: 'orders', sync_mode: 'incremental', destination_sync_mode: 'append_dedup' }],
    },
  },
  {
    name: 'webhooks-to-postgres',
    title: 'Webhooks to PostgreSQL',
    description: 'Stores the events that a service sends, and loads them every five minutes.',
    needs: ['An address of this service that the sender reaches (PUBLIC_URL)', NEEDS_TO_WRITE],
    source: {
      connector_name: 'webhook',
      name: 'Payments',
      parameters: { signature: 'secret_header' },
      inputs: ['secret'],
    },
    destination: ANALYTICS,
    connection: {
      name: 'Payments to analytics',
      destination_schema: 'payments',
      schedule: every(5),
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      streams: [{ name: 'events', sync_mode: 'incremental', destination_sync_mode: 'append_dedup' }],
    },
  },
  {
    name: 'postgres-to-http-api',
    title: 'PostgreSQL to an HTTP API (reverse ETL)',
    description: 'Sends the rows that are new or have changed since the last run to an application every hour.',
    needs: [
      NEEDS_TO_READ,
      'A table or query with a key, and the fields that the application takes',
      'A URL that takes JSON, and a token',
    ],
    source: shop(),
    destination: {
      connector_name: 'http',
      name: 'CRM',
      parameters: { authentication: 'bearer' },
      inputs: ['url', 'token'],
    },
    connection: {
      name: 'Customers to CRM',
      destination_schema: null,
      schedule: every(60),
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append_dedup',
      streams: [
        {
          namespace: 'public',
          name: 'customers',
          sync_mode: 'full_refresh',
          destination_sync_mode: 'append_dedup',
          mapping: [
            { source_field: 'id', destination_field: 'external_id', is_match_key: true },
            { source_field: 'email', destination_field: 'email', transform: 'lowercase' },
          ],
        },
      ],
    },
  },
];
