import { airbyteManifestSource } from './airbyte-manifest/source.ts';
import type { AnyConnector, AnyDestination, AnySource } from './contract/connector.ts';
import { demoSource } from './demo/source.ts';
import { duckDbDestination } from './duckdb/destination.ts';
import { duckDbSource } from './duckdb/source.ts';
import { fileDestination } from './file/destination.ts';
import { fileSource } from './file/source.ts';
import { httpDestination } from './http/destination.ts';
import { httpApiSource } from './http-api/source.ts';
import { mysqlDestination } from './mysql/destination.ts';
import { mysqlSource } from './mysql/source.ts';
import { postgresDestination } from './postgres/destination.ts';
import { postgresSource } from './postgres/source.ts';
import { sampleDestination } from './sample/destination.ts';
import { sampleSource } from './sample/source.ts';
import { slackDestination } from './slack/destination.ts';
import { sqliteSource } from './sqlite/source.ts';
import { webhookSource } from './webhook/source.ts';

/** Every connector. Adding one here is enough for the catalog, the forms, the engine and the tests. */
const CONNECTORS: AnyConnector[] = [
  postgresSource,
  postgresDestination,
  mysqlSource,
  mysqlDestination,
  sqliteSource,
  duckDbSource,
  duckDbDestination,
  fileSource,
  fileDestination,
  httpApiSource,
  airbyteManifestSource,
  webhookSource,
  httpDestination,
  demoSource,
  slackDestination,
  sampleSource,
  sampleDestination,
];

const byName = (type: AnyConnector['type']) =>
  new Map(CONNECTORS.filter((connector) => connector.type === type).map((connector) => [connector.name, connector]));
const BY_NAME = { source: byName('source'), destination: byName('destination') };

/** A connector of an account, run by `airbyte_manifest`. Only the account knows whether it exists. */
export const isCustomConnector = (name: string): boolean => /^custom\.[a-z][a-z0-9_]{0,49}$/.test(name);

export const allConnectors = (): readonly AnyConnector[] => CONNECTORS;

export function findConnector(type: 'source', name: string): AnySource | undefined;
export function findConnector(type: 'destination', name: string): AnyDestination | undefined;
export function findConnector(type: 'source' | 'destination', name: string): AnyConnector | undefined;
export function findConnector(type: 'source' | 'destination', name: string): AnyConnector | undefined {
  const found = BY_NAME[type].get(name);
  if (found || type !== 'source' || !isCustomConnector(name)) return found;
  return { ...airbyteManifestSource, name };
}
