import type { DigestPlan, Digester, KeyDigest, LoadedUpTo, RowKey, RowsDigest } from '../../../contract/digest.ts';
import type { Row, SqlSession } from '../dialect.ts';
import { where } from '../request.ts';
import { inRanges, type IsBelow, rangeOf } from './ranges.ts';

/** Number of groups that rows without a key are split into, by their hashes. */
const HASH_GROUPS = 1024;
/** More ranges make a statement larger than they save. */
const MAX_BOUNDS = 4096;
const FIND_AT_ONCE = 500;
const GROUP = `((h0 % ${HASH_GROUPS}) + ${HASH_GROUPS}) % ${HASH_GROUPS}`;

/** The SQL of a dialect for comparisons. */
export interface DigestDialect {
  /** The hashes of a row with these values of its columns: one or more integers, of which sums are taken. */
  hashes(values: readonly string[], plan: DigestPlan): string[];
  /** A condition that is true for about one row in this number. */
  oneIn(rows: number): string;
  /** A text by which rows are grouped, so that only equal bytes are in one group. */
  bytes(text: string): string;
  /**
   * The rows of a query in a form by which the planner expects few groups of them. `empty`: a query of the same columns
   * without rows. Absent: the planner needs none.
   */
  inFewGroups?(rows: string, empty: string): string;
}

/** A column as SQL. */
export interface DigestColumn {
  /** What `hashes` takes. */
  value: string;
  /** The value that is compared and sorted: texts by their bytes. */
  sorted: string;
  /** The value as text. */
  text: string;
  /** A text of the key as a value that `sorted` is compared with. */
  parse(text: string): string;
}

export interface SqlComparison {
  session: SqlSession & { close(): Promise<void> };
  dialect: DigestDialect;
  /** A table or a query with an alias. */
  from: string;
  conditions: string[];
  columns(plan: DigestPlan): DigestColumn[];
  key: number[];
  /** A random part of `from`, read at less cost than all of it: about one row in `one_in`. */
  sample?: { from: string; one_in: number } | undefined;
  /** Whether a row has changed since, as SQL; null: unknown. */
  changed(since: LoadedUpTo): string | null;
}

/** Reduces the rows of one SQL database by statements that return digests alone. */
export class SqlDigester implements Digester {
  constructor(
    private readonly sql: SqlComparison,
    private readonly facts: Pick<Digester, 'dialect' | 'types' | 'at'>,
  ) {}

  get dialect() {
    return this.facts.dialect;
  }
  get types() {
    return this.facts.types;
  }
  get at() {
    return this.facts.at;
  }

  async bounds(plan: DigestPlan, rows: number): Promise<RowKey[]> {
    const { conditions, dialect, key, sample = { from: this.sql.from, one_in: 1 } } = this.sql;
    if (key.length === 0) return [];
    const columns = this.#key(plan);
    // Without names of their own, ORDER BY would sort by these texts, which have the names of the columns.
    const texts = columns.map(({ text }, at) => `${text} as k${at}`).join(', ');
    const order = columns.map(({ sorted }) => sorted).join(', ');
    // A sample costs neither a sort of all keys nor a number for each row.
    const sampled = await this.#select(
      `select ${texts} from ${sample.from}${where([...conditions, dialect.oneIn(rows / sample.one_in)])} order by ${order}`,
    );
    const keys = sampled.filter((row): row is RowKey => !row.includes(null));
    const step = Math.ceil(keys.length / MAX_BOUNDS);
    return keys.filter((_, index) => index % step === 0);
  }

  async ranges(plan: DigestPlan, bounds: RowKey[]): Promise<RowsDigest[]> {
    const { key } = this.sql;
    const { list, sums } = this.#hashes(plan);
    const hasKey = key.length > 0;
    const group = hasKey ? 'r' : GROUP;
    const all = this.#rows(hasKey ? [...list, `${rangeOf(bounds, this.#isBelow(plan))} as r`] : list);
    const empty = this.#rows([...list.map(() => 'cast(0 as bigint)'), ...(hasKey ? ['0'] : [])], ['false']);
    const inner = this.sql.dialect.inFewGroups?.(all, empty) ?? all;
    const rows = await this.#select(`select ${group}, count(*), ${sums} from (${inner}) v group by ${group}`);
    const total = hasKey ? bounds.length + 1 : HASH_GROUPS;
    const found = Array.from({ length: total }, (): RowsDigest => ({ count: 0, sum: '' }));
    for (const [index, count, ...parts] of rows) found[Number(index)] = { count: Number(count), sum: parts.join(' ') };
    return found;
  }

  async rows(plan: DigestPlan, bounds: RowKey[], ranges: number[]): Promise<KeyDigest[]> {
    const { key } = this.sql;
    if (key.length > 0) return this.#byKey(plan, inRanges(bounds, ranges, this.#isBelow(plan)));
    const { list, names } = this.#hashes(plan);
    const condition = `${GROUP} in (${ranges.join(', ')})`;
    const found = await this.#select(
      `select count(*), ${names} from (${this.#rows(list)}) v where ${condition} group by ${names}`,
    );
    // The hash is the key: rows differ by how often they are there.
    return found.map(([count, ...hashes]) => ({
      key: hashes.map((hash) => hash ?? ''),
      count: Number(count),
      sum: '',
      changed: null,
    }));
  }

  async find(plan: DigestPlan, keys: RowKey[], since: LoadedUpTo): Promise<KeyDigest[]> {
    const found: KeyDigest[] = [];
    const columns = this.#key(plan);
    for (let from = 0; from < keys.length; from += FIND_AT_ONCE) {
      const wanted = keys
        .slice(from, from + FIND_AT_ONCE)
        .map((key) => `(${columns.map(({ sorted, parse }, at) => `${sorted} = ${parse(key[at]!)}`).join(' and ')})`);
      found.push(...(await this.#byKey(plan, `(${wanted.join(' or ')})`, since)));
    }
    return found;
  }

  async close(): Promise<void> {
    await this.sql.session.close();
  }

  /** Rows of a key that is not unique are added up. */
  async #byKey(plan: DigestPlan, condition: string, since?: LoadedUpTo): Promise<KeyDigest[]> {
    const changed = since ? this.sql.changed(since) : null;
    const { list, sums } = this.#hashes(plan);
    const columns = this.#key(plan);
    const keys = columns.map(({ text }, at) => `${text} as k${at}`);
    const shown = columns.map((_, at) => `max(k${at})`).join(', ');
    const groups = columns.map((_, at) => this.sql.dialect.bytes(`k${at}`)).join(', ');
    const flag = changed === null ? 'null' : 'max(case when c then 1 else 0 end)';
    const inner = this.#rows([...keys, ...list, ...(changed === null ? [] : [`${changed} as c`])], [condition]);
    const rows = await this.#select(`select ${flag}, count(*), ${shown}, ${sums} from (${inner}) v group by ${groups}`);
    return rows.map(([isChanged, count, ...rest]) => ({
      key: rest.slice(0, columns.length).map((text) => text ?? ''),
      count: Number(count),
      sum: rest.slice(columns.length).join(' '),
      changed: isChanged == null ? null : isChanged === '1',
    }));
  }

  #rows(list: readonly string[], more: readonly string[] = []): string {
    const { from, conditions } = this.sql;
    return `select ${list.join(', ')} from ${from}${where([...conditions, ...more])}`;
  }

  #hashes(plan: DigestPlan) {
    const compared = this.sql.columns(plan).filter((_, at) => plan.forms[at] !== 'none');
    const values = compared.map(({ value }) => value);
    const hashes = this.sql.dialect.hashes(values, plan);
    return {
      list: hashes.map((hash, at) => `${hash} as h${at}`),
      names: hashes.map((_, at) => `h${at}`).join(', '),
      sums: hashes.map((_, at) => `sum(h${at})`).join(', '),
    };
  }

  #key(plan: DigestPlan): DigestColumn[] {
    const columns = this.sql.columns(plan);
    return this.sql.key.map((index) => columns[index]!);
  }

  #isBelow(plan: DigestPlan): IsBelow {
    const columns = this.#key(plan);
    const row = (parts: string[]) => (parts.length === 1 ? parts[0]! : `(${parts.join(', ')})`);
    return (bound) =>
      `${row(columns.map(({ sorted }) => sorted))} < ${row(columns.map(({ parse }, at) => parse(bound[at]!)))}`;
  }

  async #select(text: string): Promise<Row[]> {
    return (await this.sql.session.query(text, { slow: true })).rows;
  }
}
