import { ofStream } from '../../contract/replication.ts';
import type { PgSession } from '../connection/session.ts';
import { identifier, relation } from '../connection/sql.ts';
import type { Member } from './log-members.ts';
import { publicationProblem, publicationRows, publishedRow } from './log-identity.ts';
import { setUpError } from './replication-slots.ts';

const ofPublication = (row: readonly (string | null)[]) => [...row.slice(0, 13), null, null];

/**
 * Creates the publication of a log where it is missing, and adds tables that will be read from it. A publication that
 * sends the wrong kinds of changes is created again: its other streams notice and fail.
 */
export async function addToPublication(session: PgSession, name: string, members: readonly Member[]): Promise<void> {
  const found = await publicationRows(session, name);
  const [any] = found.rows;
  const isSound = any !== undefined && any[2] !== 't' && publicationProblem(ofPublication(any)) === null;
  if (!isSound) await createPublication(session, name);
  for (const { at, request } of members) {
    const own = isSound ? publishedRow(found, request.stream) : undefined;
    if (own && publicationProblem(own) === null) continue;
    const table = relation(request.stream.namespace ?? 'public', request.stream.name);
    await ofStream(at, async () => {
      if (own) await session.query(`alter publication ${identifier(name)} drop table only ${table}`);
      await session.query(`alter publication ${identifier(name)} add table only ${table}`).catch((error) => {
        throw setUpError(error);
      });
    });
  }
}

async function createPublication(session: PgSession, name: string): Promise<void> {
  await session.query(`drop publication if exists ${identifier(name)}`);
  // Publishes rows of partitions as rows of the partitioned table.
  await session
    .query(`create publication ${identifier(name)} with (publish_via_partition_root = true)`)
    .catch((error) => {
      throw setUpError(error);
    });
}

/** Removes one table, if the publication has it. */
export async function unpublishTable(
  session: PgSession,
  name: string,
  table: { namespace: string | null; name: string },
): Promise<void> {
  if (!publishedRow(await publicationRows(session, name), table)) return;
  const dropped = relation(table.namespace ?? 'public', table.name);
  await session.query(`alter publication ${identifier(name)} drop table ${dropped}`);
}
