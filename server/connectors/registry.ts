import type * as airbyteManifestSource from './airbyte-manifest/source.ts';
import type { AnyConnector, AnyDestination, AnySource } from './contract/connector.ts';
import type * as demoSource from './demo/source.ts';
import type * as duckDbDestination from './duckdb/destination.ts';
import type * as duckDbSource from './duckdb/source.ts';
import type * as fileDestination from './file/destination.ts';
import type * as fileSource from './file/source.ts';
import type * as httpApiSource from './http-api/source.ts';
import type * as httpDestination from './http/destination.ts';
import type * as mysqlDestination from './mysql/destination.ts';
import type * as mysqlSource from './mysql/source.ts';
import type * as postgresDestination from './postgres/destination.ts';
import type * as postgresSource from './postgres/source.ts';
import type * as sampleDestination from './sample/destination.ts';
import type * as sampleSource from './sample/source.ts';
import type * as slackDestination from './slack/destination.ts';
import type * as sqliteSource from './sqlite/source.ts';
import type * as webhookSource from './webhook/source.ts';

/**
 * Every connector, by name and type. Adding one here is enough for the catalog, the forms, the engine and the tests. Each
 * is loaded with its first use: they are half of the modules of a worker, and a run needs two of them.
 */
const CONNECTORS: Record<string, () => AnyConnector> = {
  'postgres source': () => (require('./postgres/source.ts') as typeof postgresSource).postgresSource,
  'postgres destination': () =>
    (require('./postgres/destination.ts') as typeof postgresDestination).postgresDestination,
  'mysql source': () => (require('./mysql/source.ts') as typeof mysqlSource).mysqlSource,
  'mysql destination': () => (require('./mysql/destination.ts') as typeof mysqlDestination).mysqlDestination,
  'sqlite source': () => (require('./sqlite/source.ts') as typeof sqliteSource).sqliteSource,
  'duckdb source': () => (require('./duckdb/source.ts') as typeof duckDbSource).duckDbSource,
  'duckdb destination': () => (require('./duckdb/destination.ts') as typeof duckDbDestination).duckDbDestination,
  'file source': () => (require('./file/source.ts') as typeof fileSource).fileSource,
  'file destination': () => (require('./file/destination.ts') as typeof fileDestination).fileDestination,
  'http_api source': () => (require('./http-api/source.ts') as typeof httpApiSource).httpApiSource,
  'airbyte_manifest source': () =>
    (require('./airbyte-manifest/source.ts') as typeof airbyteManifestSource).airbyteManifestSource,
  'webhook source': () => (require('./webhook/source.ts') as typeof webhookSource).webhookSource,
  'http destination': () => (require('./http/destination.ts') as typeof httpDestination).httpDestination,
  'demo source': () => (require('./demo/source.ts') as typeof demoSource).demoSource,
  'slack destination': () => (require('./slack/destination.ts') as typeof slackDestination).slackDestination,
  'sample source': () => (require('./sample/source.ts') as typeof sampleSource).sampleSource,
  'sample destination': () => (require('./sample/destination.ts') as typeof sampleDestination).sampleDestination,
};

/** A connector of an account, run by `airbyte_manifest`. Only the account knows whether it exists. */
export const isCustomConnector = (name: string): boolean => /^custom\.[a-z][a-z0-9_]{0,49}$/.test(name);

/** Loads all of them. */
export const allConnectors = (): AnyConnector[] => Object.values(CONNECTORS).map((load) => load());

export function findConnector(type: 'source', name: string): AnySource | undefined;
export function findConnector(type: 'destination', name: string): AnyDestination | undefined;
export function findConnector(type: 'source' | 'destination', name: string): AnyConnector | undefined;
export function findConnector(type: 'source' | 'destination', name: string): AnyConnector | undefined {
  const found = CONNECTORS[`${name} ${type}`]?.();
  if (found || type !== 'source' || !isCustomConnector(name)) return found;
  return { ...findConnector('source', 'airbyte_manifest')!, name };
}
