import { join } from 'node:path';
import type {
  ConnectorContext,
  SampledTable,
  TableSample,
  Writer,
  WriteTarget,
} from '../../server/connectors/contract/connector.ts';
import { duckDbDestination } from '../../server/connectors/duckdb/destination.ts';
import type { DuckDbDestinationConfig } from '../../server/connectors/duckdb/connection/settings.ts';
import { mysqlDestination } from '../../server/connectors/mysql/destination.ts';
import { postgresDestination } from '../../server/connectors/postgres/destination.ts';
import { duckDbFolder, onDuckDb } from './duckdb-places.ts';
import { destinationConfig as mysqlConfig, type MysqlSide } from './mysql-support.ts';
import { destinationConfig as postgresConfig, type twoDatabases } from './postgres-support.ts';
import { contextOf as contextOfAny } from './places.ts';

/** A database that keeps rejected rows. */
export interface RejectingPlace {
  /** `warnings`: their codes. `messages`: their texts. */
  open(target: WriteTarget): Promise<{ writer: Writer; warnings: string[]; messages: string[] }>;
  sample(sample: TableSample): Promise<SampledTable>;
  /** The values of the first column, in order, empty texts for NULL. */
  values(query: string): Promise<string[]>;
  run(statement: string): Promise<unknown>;
  /** Part of the database's message for an invalid date, and for a violated constraint. */
  words: { date: string; rule: string };
  rowAsText: string;
  before?(): Promise<unknown>;
  after?(): Promise<unknown>;
}

/** The texts of all warnings from now on. */
function messagesOf(ctx: { warn(code: string, message: string): void }): string[] {
  const messages: string[] = [];
  const { warn } = ctx;
  ctx.warn = (code, message) => {
    warn(code, message);
    messages.push(message);
  };
  return messages;
}

export function postgresPlace(sides: ReturnType<typeof twoDatabases>): RejectingPlace {
  return {
    async open(target) {
      const { ctx, warnings } = postgresConfig(sides.destination);
      const messages = messagesOf(ctx);
      return { writer: await postgresDestination.open(ctx, target), warnings, messages };
    },
    sample: (sample) => postgresDestination.sampleTable!(postgresConfig(sides.destination).ctx, sample),
    values: async (query) =>
      (await sides.destination.sql.unsafe(query)).map((row) => String(Object.values(row)[0] ?? '')),
    run: (statement) => sides.destination.sql.unsafe(statement),
    rowAsText: '"row"::text',
    words: { date: 'invalid input syntax for type date', rule: 'constraint' },
  };
}

/** `loads`: by LOAD DATA, or else by INSERTs. */
export function mysqlPlace(side: MysqlSide, loads: boolean): RejectingPlace {
  return {
    async open(target) {
      const { ctx, warnings } = mysqlConfig(side);
      const messages = messagesOf(ctx);
      return { writer: await mysqlDestination.open(ctx, target), warnings, messages };
    },
    sample: (sample) => mysqlDestination.sampleTable!(mysqlConfig(side).ctx, sample),
    values: async (query) => (await side.sql(query)).map((row) => Object.values(row).map(String)[0] ?? ''),
    run: (statement) => side.sql(statement),
    rowAsText: 'cast(`row` as char)',
    words: { date: loads ? 'Data truncated for column' : 'Incorrect date value', rule: 'CONSTRAINT' },
    before: () => side.sql(`set global local_infile = ${loads ? 1 : 0}`),
    after: () => side.sql('set global local_infile = 1'),
  };
}

export async function duckDbPlace(): Promise<RejectingPlace> {
  const folder = await duckDbFolder();
  const file = join(folder.filesRoot, 'data.duckdb');
  const context = () =>
    contextOfAny(duckDbDestination, folder, {
      settings: { path: 'data.duckdb' },
    }) as ConnectorContext<DuckDbDestinationConfig>;
  return {
    async open(target) {
      const warnings: string[] = [];
      const ctx = context();
      ctx.warn = (code) => void warnings.push(code);
      const messages = messagesOf(ctx);
      return {
        writer: await duckDbDestination.open(ctx, target),
        warnings,
        messages,
      };
    },
    sample: (sample) => duckDbDestination.sampleTable!(context(), sample),
    values: async (query) => (await onDuckDb(file, query)).map(([value]) => value ?? ''),
    run: (statement) => onDuckDb(file, ...statement.split(';')),
    rowAsText: '"row"::text',
    words: { date: 'which is not a valid DATE', rule: 'constraint' },
    after: folder.close,
  };
}
