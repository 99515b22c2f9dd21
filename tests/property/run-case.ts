import { eq } from 'drizzle-orm';
import type postgres from 'postgres';
import { connectionStreams, streamRuns } from '../../db/schema/index.ts';
import type { AnyDestination, AnySource } from '../../server/connectors/contract/connector.ts';
import { findConnector } from '../../server/connectors/registry.ts';
import { isLiveRun } from '../../server/pipeline/run-states.ts';
import { attemptAlone } from '../../server/transfer/execute-stream.ts';
import type { TestDeps } from '../support/database.ts';
import { getRun, getStreamRuns, makePipeline, type Pipeline } from '../support/pipeline.ts';
import { whileBreaking } from './breaking.ts';
import type { Case, Pair, Step } from './cases.ts';
import { actualRows, type Difference, difference, expectedRows } from './comparison.ts';
import { filterOf } from './filters.ts';
import type { Place } from './places.ts';
import { type Column, type Row, SourceTable } from './source-table.ts';

export interface World {
  service: TestDeps;
  /** The database that gives texts their canonical spelling. */
  spelling: postgres.Sql;
  sources: Record<string, Place>;
  targets: Record<string, Place>;
}

/** How a case ended: everything arrived, or the service refused it with a reason. */
export interface Outcome {
  refused: string | null;
  runs: number;
  crashes: number;
  rows: number;
  /** Values that were changed and counted. */
  counted: number;
}

/** A silent difference, with the data to reproduce it. */
export class Silent extends Error {
  override name = 'Silent';
}

const MAX_ATTEMPTS = 8;
const CLEAR_CODES = /^(?!unexpected_error$|worker_killed$)[a-z_]+$/;

/** Moves the table of a case step by step and compares both sides after each run. @throws Silent */
export async function runCase(world: World, pair: Pair, plan: Case): Promise<Outcome> {
  const source = world.sources[pair.from]!;
  const target = world.targets[pair.to]!;
  await Promise.all([source.clear(), target.clear()]);
  const table = new SourceTable(source, plan, pair.from === pair.to);
  return new CaseRun(world, { pair, plan, table, target }).all();
}

interface Parts {
  pair: Pair;
  plan: Case;
  table: SourceTable;
  target: Place;
}

class CaseRun {
  readonly #outcome: Outcome = { refused: null, runs: 0, crashes: 0, rows: 0, counted: 0 };
  #pipeline: Pipeline | null = null;
  #expected: Row[] = [];
  #columns: Column[] = [];
  #lastStep = 0;
  #where: string[] = [];
  /** Columns whose values were changed, with the number that the warnings name. */
  readonly #changed = new Map<string, number>();
  #rejected = 0;

  constructor(
    private readonly world: World,
    private readonly parts: Parts,
  ) {}

  async all(): Promise<Outcome> {
    const { plan, table } = this.parts;
    await table.create();
    for (const [index, step] of plan.steps.entries()) {
      await table.apply(step);
      const ended = await this.#runOnce(step);
      if (ended.status === 'succeeded') await this.#expect(index + 1);
      else await this.#refusal(ended);
      await this.#compare(ended.status);
      if (ended.status !== 'succeeded') break;
    }
    return this.#outcome;
  }

  async #runOnce(step: Step) {
    const { service } = this.world;
    const { plan, pair } = this.parts;
    const created = (this.#pipeline ??= await this.#create());
    Object.assign(service.deps.config, { CHECKPOINT_KB: plan.checkpoint_kb });
    const run_id = await created.start();
    const [stream] = await getStreamRuns(service, run_id);
    const connectors = {
      source: findConnector('source', pair.from) as AnySource,
      destination: findConnector('destination', pair.to) as AnyDestination,
    };
    const breaking = { crash: step.crash, batch_rows: plan.batch_rows, bytes: plan.lane === 'bytes' };
    const { crashed } = await whileBreaking(connectors, breaking, async () => {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        if (!isLiveRun((await getRun(service, run_id)).status)) break;
        await attemptAlone(service.deps, stream!.id, new AbortController().signal);
      }
    });
    const [row] = await service.deps.db.select().from(streamRuns).where(eq(streamRuns.id, stream!.id));
    this.#outcome.runs += 1;
    this.#outcome.crashes += crashed ? 1 : 0;
    if (row!.status !== 'succeeded' && row!.status !== 'failed') {
      throw this.#failure(`The run ended as ${row!.status}: ${JSON.stringify(row!.error)}`);
    }
    this.#count(row!.warnings);
    this.#rejected += row!.rows_rejected ?? 0;
    return row!;
  }

  async #create(): Promise<Pipeline> {
    const { plan, pair, table, target } = this.parts;
    const [sync_mode, destination_sync_mode] = {
      overwrite: ['full_refresh', 'overwrite'] as const,
      append: ['full_refresh', 'append'] as const,
      'incremental append': ['incremental', 'append'] as const,
      append_dedup: ['incremental', 'append_dedup'] as const,
    }[plan.mode];
    const key = table.keyColumns.length > 0 ? table.keyColumns : plan.mode === 'append_dedup' ? ['id'] : [];
    const filters = plan.filters.map((one) => filterOf(table, one)).filter((one) => one !== null);
    this.#where = filters.map(({ sql }) => sql);
    const created = await makePipeline(this.world.service, {
      source: { name: pair.from, parameters: table.place.parameters() },
      destination: { name: pair.to, parameters: target.parameters() },
      only: [table.name],
      stream: {
        sync_mode,
        destination_sync_mode,
        cursor_field: sync_mode === 'incremental' ? ['moved'] : null,
        primary_key: key.map((name) => [name]),
        filters: filters.map(({ filter }) => filter),
        fields: table.columns.some(isTreated) ? table.columns.filter(isTreated).map(fieldOf) : [],
      },
      connection: {
        inexact_values: plan.allow_inexact ? 'allow' : 'refuse',
        rejected_rows_policy: plan.keep_rejects ? 'keep' : 'fail',
      },
    });
    const streams = await this.world.service.deps.db
      .select({ id: connectionStreams.id })
      .from(connectionStreams)
      .where(eq(connectionStreams.connection_id, created.connection.id));
    if (streams.length !== 1) throw this.#failure(`${streams.length} streams were discovered instead of the table`);
    return created;
  }

  #count(warnings: { code: string; message: string }[]): void {
    for (const { code, message } of warnings) {
      const match = /^(\d+) values? of (.*?) did not fit/.exec(message);
      if (code !== 'values_changed' || !match) continue;
      this.#changed.set(match[2]!, (this.#changed.get(match[2]!) ?? 0) + Number(match[1]));
      this.#outcome.counted += Number(match[1]);
    }
  }

  /** The rows that the destination must have after a run that has read the source in its present state. */
  async #expect(step: number): Promise<void> {
    const { plan, table } = this.parts;
    const content = await table.content(this.#where);
    const rows = await expectedRows(this.world.spelling, content);
    const fresh = rows.filter((row) => Number(row.step) > this.#lastStep);
    this.#columns = [
      ...this.#columns.filter((old) => !content.columns.some(({ target }) => target === old.target)),
      ...content.columns,
    ];
    this.#outcome.rows += rows.length;
    if (plan.mode === 'overwrite') {
      this.#expected = rows;
      this.#columns = content.columns;
    } else if (plan.mode === 'append') this.#expected = [...this.#expected, ...rows];
    else if (plan.mode === 'incremental append') this.#expected = [...this.#expected, ...fresh];
    else {
      const replaced = new Set(fresh.map((row) => row.id));
      this.#expected = [...this.#expected.filter((row) => !replaced.has(row.id ?? null)), ...fresh];
    }
    this.#lastStep = step;
  }

  async #refusal({ error }: { error: { code: string; message: string } | null }): Promise<void> {
    this.#outcome.refused = error?.code ?? 'none';
    if (!error || !CLEAR_CODES.test(error.code))
      throw this.#failure(`The run failed without a clear error: ${JSON.stringify(error)}`);
  }

  async #compare(status: string): Promise<void> {
    const { plan, table, target } = this.parts;
    // Commits of an incremental run stay even if it fails later.
    if (status !== 'succeeded' && table.isIncremental) return;
    const about = { table: table.name, columns: this.#columns, wide: plan.wide_kb > 0 };
    const actual = await actualRows(this.world.spelling, target, about);
    const found = difference(this.#expected, actual ?? [], this.#columns);
    if (!found || this.#isCounted(found)) return;
    throw this.#failure(
      `${status === 'succeeded' ? 'The run succeeded' : `The run was refused (${this.#outcome.refused})`}, and the destination differs`,
      found,
    );
  }

  /** Every difference is in the warnings or among the rejected rows, with its number. */
  #isCounted({ missing, extra, changed }: Difference): boolean {
    const counts = Object.entries(changed).every(([name, { count }]) => {
      const warned = this.#changed.get(`${this.parts.table.name}.${name}`) ?? 0;
      // Repeated attempts and merged rows are counted, too.
      return warned >= count;
    });
    return counts && extra.length === 0 && missing.length <= this.#rejected;
  }

  #failure(message: string, found?: Difference): Silent {
    const { plan, pair, table } = this.parts;
    const shown = (rows: Row[]) => rows.slice(0, 3).map((row) => `    ${JSON.stringify(row)}`);
    const lines = [
      message,
      `  ${pair.from} to ${pair.to}, ${plan.mode}, key ${plan.key}, ${plan.lane}, batches of ${plan.batch_rows} rows, commits after ${plan.checkpoint_kb} KB`,
      `  inexact values: ${plan.allow_inexact ? 'allow' : 'refuse'}, rejected rows: ${plan.keep_rejects ? 'keep' : 'fail'}, cursor: ${table.cursor.ddl}`,
      ...this.#where.map((sql) => `  filter: ${sql}`),
      ...table.columns.filter(isTreated).map((column) => `  ${column.name}: ${JSON.stringify(fieldOf(column))}`),
      ...plan.steps
        .map(({ crash }, index) => (crash ? `  run ${index + 1} breaks ${crash.when} ${crash.at} ${crash.calls}` : ''))
        .filter(Boolean),
      '  at the source:',
      ...table.statements.map((statement) => `    ${statement.slice(0, 400)};`),
      ...(found?.missing.length ? [`  ${found.missing.length} rows missing:`, ...shown(found.missing)] : []),
      ...(found?.extra.length ? [`  ${found.extra.length} rows too many:`, ...shown(found.extra)] : []),
      ...Object.entries(found?.changed ?? {}).map(
        ([name, one]) =>
          `  ${one.count} values of ${name} differ: expected ${JSON.stringify(one.expected)}, is ${JSON.stringify(one.actual)}`,
      ),
    ];
    return new Silent(lines.join('\n'));
  }
}

const isTreated = ({ treatment, name, target }: Column) => treatment !== 'none' || name !== target;

const fieldOf = ({ name, target, treatment, destination_type }: Column) => ({
  path: [name],
  selected: true,
  destination_name: target === name ? null : target,
  destination_type,
  masking: treatment === 'redact' || treatment === 'hash_sha256' ? treatment : ('none' as const),
});
