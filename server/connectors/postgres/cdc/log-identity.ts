import type { ReadRequest, StreamSchema, StreamState } from '../../contract/connector.ts';
import { CannotContinueError } from '../../contract/errors.ts';
import { lsnText, lsnValue } from '../connection/lsn.ts';
import type { PgSession } from '../connection/session.ts';
import { identifier, literal } from '../connection/sql.ts';
import { timelineEnd } from '../connection/timeline.ts';
import { RESET_CURSOR_HINT } from './table-shape.ts';

/** Which log a state belongs to. Kept in the state, so that source and destination can be compared by it. */
export interface LogIdentity {
  system_identifier: string;
  timeline: number;
  /** The rows of the catalog that define the publication; they change whenever it is altered. */
  publication: string;
  /** Grows with every read. The source keeps it too: a source that was set back to an older copy has a lower one. */
  mark: number;
  /** The slot that the state was read from, if several streams share it. Absent: the stream's own. */
  slot?: string;
}

/** Where the server is. */
interface ServerPosition {
  system_identifier: string;
  timeline: number;
  position: bigint;
}

export const identityOf = (state: StreamState | null): LogIdentity | null =>
  (state?.source as LogIdentity | undefined) ?? null;

/** @param replication a session opened for replication */
export async function serverPosition(replication: PgSession): Promise<ServerPosition> {
  const { rows } = await replication.query('IDENTIFY_SYSTEM');
  const [[system_identifier, timeline, position] = []] = rows;
  return { system_identifier: system_identifier!, timeline: Number(timeline), position: lsnValue(position!) };
}

/**
 * Checks that the server still has the history that was read up to `from`.
 * @throws ConfigurationError `source_went_back`
 */
export async function assertSameHistory(
  replication: PgSession,
  { known, from, table }: { known: LogIdentity | null; from: string; table: string },
): Promise<ServerPosition> {
  const server = await serverPosition(replication);
  if (known && known.system_identifier !== server.system_identifier) {
    const message = `${table} was read from the server ${known.system_identifier}, and this is ${server.system_identifier}`;
    throw wentBack(message);
  }
  const ends =
    known && known.timeline !== server.timeline
      ? await timelineEnd(replication, known.timeline, server.timeline)
      : null;
  const reached = ends ?? server.position;
  if (reached >= lsnValue(from)) return server;
  throw wentBack(
    `The server has the log of ${table} up to ${lsnText(reached)} (timeline ${known?.timeline ?? server.timeline}), and it was read up to ${from}. The server was set back to an older copy of itself`,
  );
}

interface Publication {
  /** As in `LogIdentity`. */
  rows: string;
  mark: number;
}

/** The rows of the catalog that define a publication, one per table; a publication without tables is one row. */
export interface PublicationRows {
  name: string;
  rows: (string | null)[][];
}

export async function publicationRows(session: PgSession, name: string): Promise<PublicationRows> {
  const { rows } = await session.query(
    `select p.oid, p.xmin, p.puballtables, p.pubviaroot, p.pubinsert, p.pubupdate, p.pubdelete, p.pubtruncate,
            obj_description(p.oid, 'pg_publication'), r.oid, r.xmin, n.nspname, c.relname,
            to_jsonb(r) ->> 'prqual', to_jsonb(r) ->> 'prattrs'
       from pg_publication p left join pg_publication_rel r on r.prpubid = p.oid
       left join pg_class c on c.oid = r.prrelid left join pg_namespace n on n.oid = c.relnamespace
      where p.pubname = ${literal(name)} order by r.oid`,
  );
  return { name, rows };
}

type Table = Pick<StreamSchema, 'namespace' | 'name'>;

export const publishedRow = ({ rows }: PublicationRows, { namespace, name }: Table) =>
  rows.find((row) => row[11] === namespace && row[12] === name);

/** Why the changes of the table do not arrive as they should; null: they do. */
export function publicationProblem(own: readonly (string | null)[]): string | null {
  const [, , , viaRoot, ...rest] = own;
  const lacking = ['inserts', 'updates', 'deletes', 'truncates'].filter((_, at) => rest[at] !== 't');
  if (lacking.length > 0) return `no longer publishes ${lacking.join(', ')}`;
  if (own[13] !== null) return 'has a row filter';
  if (own[14] !== null) return 'has a column list';
  return viaRoot === 't' ? null : 'no longer publishes partitions as their table';
}

/** What defines the publication for these rows, without the mark. */
const fingerprint = (rows: readonly (readonly (string | null)[])[]) =>
  Bun.SHA256.hash(JSON.stringify(rows.map((row) => row.filter((_, at) => at !== 8))), 'hex').slice(0, 32);

/** As of the publication that a stream has for itself: other tables in it are a problem as well. */
export async function readPublication(session: PgSession, request: ReadRequest, name: string): Promise<Publication> {
  const found = await publicationRows(session, name);
  const own = ownRow(found, request);
  const alone = own[2] !== 't' && found.rows.length === 1;
  const problem = publicationProblem(own) ?? (alone ? null : 'contains other tables');
  if (problem) throw altered(name, problem);
  return { rows: fingerprint(found.rows), mark: markOf(found) };
}

/**
 * Reads the part of a common publication that sends the table, and checks that it sends every change of it.
 * @throws ConfigurationError `publication_missing`, `publication_altered`
 */
export function publicationOf(found: PublicationRows, request: ReadRequest): Publication {
  const own = ownRow(found, request);
  const problem = publicationProblem(own);
  if (problem) throw altered(found.name, problem);
  return { rows: fingerprint([own]), mark: markOf(found) };
}

/** As in `LogIdentity`; null: the table is not in the publication. */
export function publishedAs(found: PublicationRows, { stream }: ReadRequest): string | null {
  const own = publishedRow(found, stream);
  return own ? fingerprint([own]) : null;
}

function ownRow(found: PublicationRows, { stream }: ReadRequest): (string | null)[] {
  const own = publishedRow(found, stream);
  if (own) return own;
  throw new CannotContinueError(
    'publication_missing',
    `Publication ${found.name} no longer contains table ${stream.namespace}.${stream.name}, which was recreated or removed. ${RESET_CURSOR_HINT}`,
  );
}

const altered = (name: string, problem: string) =>
  new CannotContinueError(
    'publication_altered',
    `Publication ${name} ${problem}. Changes since the last run may be missing from it. ${RESET_CURSOR_HINT}, which creates the publication again`,
  );

const MARK = /^data-pipelines (\d{1,15})$/;
export const markOf = ({ rows }: PublicationRows) => Number(MARK.exec(rows[0]?.[8] ?? '')?.[1] ?? 0);

/** The statement that marks the source with a new read. */
export const markStatement = (name: string, mark: number) =>
  `comment on publication ${identifier(name)} is 'data-pipelines ${mark}'`;

/** @throws ConfigurationError when the publication or its mark are not those that an earlier read has seen */
export function assertSamePublication(
  { rows, mark }: Publication,
  { known, name, from, table }: { known: LogIdentity | null; name: string; from: string; table: string },
): void {
  if (!known) return;
  if (mark < known.mark) {
    throw wentBack(
      `The server has the log of ${table} up to read ${mark}, and read ${known.mark} reached ${from}. The server was set back to an older copy of itself`,
    );
  }
  if (rows !== known.publication) throw altered(name, 'was altered after the last run');
}

const wentBack = (problem: string) => new CannotContinueError('source_went_back', `${problem}. ${RESET_CURSOR_HINT}`);
