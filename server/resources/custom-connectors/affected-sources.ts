import { and, asc, eq, inArray, isNull } from 'drizzle-orm';
import {
  type AccountConnectorRow,
  accountConnectors,
  connections,
  connectionStreams,
  type CustomConnectorRow,
} from '../../../db/schema/index.ts';
import type { Ctx } from '../../api/procedure.ts';
import { openParameters } from '../../connector-runtime/connector-secrets.ts';
import { parseSettings } from '../../connector-runtime/parse-settings.ts';
import type { ConnectorOutline } from '../../connectors/contract/connector.ts';
import { findConnector } from '../../connectors/registry.ts';
import { DOCUMENTS, documentParameters } from '../access/custom-connectors.ts';
import type { ReadConnector } from './read-documents.ts';
import type { AffectedSource, ManifestChange } from './schema.ts';

export interface ExaminedSource {
  row: AccountConnectorRow;
  effect: AffectedSource;
}

/** The sources of a connector, oldest first. */
export const sourcesOf = (ctx: Pick<Ctx, 'db' | 'principal'>, { name }: Pick<CustomConnectorRow, 'name'>) =>
  ctx.db
    .select()
    .from(accountConnectors)
    .where(
      and(
        eq(accountConnectors.account_id, ctx.principal.account_id),
        eq(accountConnectors.connector_type, 'source'),
        eq(accountConnectors.connector_name, name),
        isNull(accountConnectors.deleted_at),
      ),
    )
    .orderBy(asc(accountConnectors.created_at), asc(accountConnectors.id));

/** What a new manifest means for each source of a connector. Sends no requests. */
export async function examineSources(
  ctx: Ctx,
  row: CustomConnectorRow,
  next: { read: ReadConnector; changes: ManifestChange[] },
): Promise<ExaminedSource[]> {
  const sources = await sourcesOf(ctx, row);
  const streams = await brokenStreams(ctx, sources, next.changes);
  const known = new Set((row.outline as unknown as ConnectorOutline).directs_secrets);
  const redirects = next.read.outline.directs_secrets.some((one) => !known.has(one));
  const examined: ExaminedSource[] = [];
  for (const source of sources) {
    const effect = {
      id: source.id,
      name: source.name,
      problems: await problemsOf(ctx, source, next.read),
      needs_secrets: redirects && source.secrets !== null,
      streams: streams
        .filter(({ source_id }) => source_id === source.id)
        .map(({ connection_id, connection_name, stream }) => ({ connection_id, connection_name, stream })),
    };
    examined.push({ row: source, effect });
  }
  return examined;
}

export const isBroken = ({ problems, needs_secrets, streams }: AffectedSource): boolean =>
  problems.length > 0 || needs_secrets || streams.length > 0;

const MAX_PROBLEMS = 10;

async function problemsOf(ctx: Ctx, source: AccountConnectorRow, read: ReadConnector): Promise<string[]> {
  // Secrets that are not stored yet are not a problem of the manifest.
  if (source.status === 'pending_auth') return [];
  const connector = findConnector('source', source.connector_name)!;
  const parameters = { ...withoutDocuments(openParameters(ctx.deps, source)), ...documentParameters(read) };
  const parsed = await parseSettings(source.account_id, connector, parameters);
  return 'problems' in parsed ? parsed.problems.slice(0, MAX_PROBLEMS).map(({ message }) => message) : [];
}

/** Parameters of a source without the files of its connector. */
export const withoutDocuments = (parameters: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(parameters).filter(([name]) => !DOCUMENTS.includes(name)));

async function brokenStreams(ctx: Ctx, sources: AccountConnectorRow[], changes: ManifestChange[]) {
  const names = [...new Set(changes.flatMap((one) => (one.is_breaking && one.stream !== null ? [one.stream] : [])))];
  if (names.length === 0 || sources.length === 0) return [];
  return ctx.db
    .select({
      source_id: connections.source_id,
      connection_id: connections.id,
      connection_name: connections.name,
      stream: connectionStreams.name,
    })
    .from(connectionStreams)
    .innerJoin(connections, eq(connections.id, connectionStreams.connection_id))
    .where(
      and(
        inArray(
          connections.source_id,
          sources.map(({ id }) => id),
        ),
        isNull(connections.deleted_at),
        eq(connectionStreams.selected, true),
        inArray(connectionStreams.name, names),
      ),
    )
    .orderBy(asc(connections.name), asc(connectionStreams.name));
}
