import { eq } from 'drizzle-orm';
import { accountConnectors, events } from '../../db/schema/index.ts';
import type { Call } from './api.ts';
import type { TestDeps } from './database.ts';
import { uniqueName } from './resources.ts';

/** Sources and destinations created over the API, and their rows in the database. */
export function accountConnectorsOf({ deps: { db } }: Pick<TestDeps, 'deps'>, call: Call) {
  return {
    /** Creates a source, of connector `sample` by default. Returns the response, even if it is an error. */
    create: (body: object, query = '') =>
      call('POST', `/account_connectors${query}`, {
        name: uniqueName('sample'),
        connector_type: 'source',
        connector_name: 'sample',
        ...body,
      }),
    rowOf: async (id: string) => {
      const [row] = await db.select().from(accountConnectors).where(eq(accountConnectors.id, id));
      if (!row) throw new Error(`no row ${id}`);
      return row;
    },
    /** Kinds of its events, the oldest first. */
    eventsOf: async (id: string) => {
      const rows = await db.select().from(events).where(eq(events.account_connector_id, id)).orderBy(events.id);
      return rows.map((row) => row.event);
    },
  };
}
