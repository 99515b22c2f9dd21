import { type Case, isIncremental, KINDS, type Step } from './cases.ts';
import { nameOf, sourceSql } from './canonical.ts';
import { type Dialect, type Form, hexOf, type Kind, quoted } from './kinds.ts';
import type { Place, Texts } from './places.ts';

/** A column of the source's table and the destination of its values. */
export interface Column {
  name: string;
  kind: Kind;
  /** Its name and form at the destination. */
  target: string;
  form: Form;
  treatment: 'none' | 'redact' | 'hash_sha256' | 'retype';
  destination_type: string | null;
}

export type Row = Record<string, string | null>;

const NAMES = ['', 'x', ' Space', 'Üñï', '"quote"', 'select', "it's", 'UPPER', '%', '-'];
/** Texts that some collations consider equal. */
const KEYS = ['a', 'A', 'á', 'a ', 'ß', 'ss', 'İ', 'i', '', 'e\u0301', 'é', '😀', '\\', "'", 'Z'];

const CURSORS: Record<Dialect, { ddl: string; literal(at: number): string }[]> = {
  postgres: [
    { ddl: 'bigint', literal: String },
    { ddl: 'timestamptz', literal: (at) => `timestamptz '2020-01-01 00:00:00.000001+00' + ${at} * interval '1 ms'` },
    { ddl: 'timestamp', literal: (at) => `timestamp '2020-01-01 00:00:00.000001' + ${at} * interval '1 us'` },
    { ddl: 'date', literal: (at) => `date '2020-01-01' + ${at}` },
    { ddl: 'numeric(12,2)', literal: (at) => `${at}.25` },
    { ddl: 'numeric', literal: (at) => `${at}.${'0'.repeat(1 + (at % 3))}` },
    { ddl: 'text collate "C"', literal: (at) => quoted(String(at).padStart(6, '0')) },
    { ddl: 'double precision', literal: (at) => `${at} / 7.0::double precision` },
  ],
  mysql: [
    { ddl: 'bigint', literal: String },
    { ddl: 'timestamp(6) null', literal: (at) => `timestamp '2020-01-01 00:00:00.000001' + interval ${at} second` },
    { ddl: 'datetime(6)', literal: (at) => `timestamp '2020-01-01 00:00:00.000001' + interval ${at} microsecond` },
    { ddl: 'date', literal: (at) => `date '2020-01-01' + interval ${at} day` },
    { ddl: 'decimal(12,2)', literal: (at) => `${at}.25` },
    { ddl: 'bigint unsigned', literal: String },
    { ddl: 'varchar(20) collate utf8mb4_bin', literal: (at) => quoted(String(at).padStart(6, '0')) },
  ],
  duckdb: [
    { ddl: 'BIGINT', literal: String },
    { ddl: 'TIMESTAMP', literal: (at) => `timestamp '2020-01-01 00:00:00.000001' + ${at} * interval 1 microsecond` },
    { ddl: 'TIMESTAMPTZ', literal: (at) => `timestamptz '2020-01-01 00:00:00.000001+00' + ${at} * interval 1 second` },
    { ddl: 'DATE', literal: (at) => `date '2020-01-01' + ${at}` },
    { ddl: 'DECIMAL(12,2)', literal: (at) => `${at}.25` },
    { ddl: 'HUGEINT', literal: String },
    { ddl: 'VARCHAR', literal: (at) => quoted(String(at).padStart(6, '0')) },
  ],
  sqlite: [
    { ddl: 'integer', literal: String },
    { ddl: 'datetime', literal: (at) => `datetime('2020-01-01 00:00:00', '+${at} seconds')` },
    { ddl: 'text', literal: (at) => quoted(String(at).padStart(6, '0')) },
    { ddl: 'date', literal: (at) => `date('2020-01-01', '+${at} days')` },
    { ddl: 'real', literal: (at) => `${at}.5` },
  ],
};

const KEY_TYPE: Record<Dialect, string> = {
  postgres: 'varchar(40)',
  mysql: 'varchar(40) collate utf8mb4_nopad_bin',
  duckdb: 'VARCHAR',
  sqlite: 'text',
};

function randomOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Null, one of the listed values, or a random one. */
export function valueOf(kind: Kind, choice: number, hard: boolean): string | null {
  if (choice === 0) return null;
  if (choice > 80 && kind.random) return kind.random(randomOf(choice));
  const list = hard ? [...(kind.hard ?? []), ...kind.values] : kind.values;
  return list[(choice - 1) % list.length] ?? null;
}

/** The table of a case at the source, which steps change. */
export class SourceTable {
  readonly name: string;
  columns: Column[];
  /** All statements so far, for the description of a failure. */
  readonly statements: string[] = [];
  readonly #live = new Set<number>();
  #next = 1;
  #at = 0;
  #step = 0;
  readonly #hard: boolean;

  constructor(
    readonly place: Place,
    readonly plan: Case,
    same_dialect: boolean,
  ) {
    this.#hard = plan.hard || same_dialect;
    this.name = `t${NAMES[(plan.names[0] ?? 0) % 6]}`;
    this.columns = plan.columns.map((kind, index) => this.#column(kind, index));
  }

  get dialect(): Dialect {
    return this.place.dialect;
  }

  get keyColumns(): string[] {
    return { none: [], id: ['id'], text: ['k'], both: ['k', 'id'] }[this.plan.key];
  }

  get cursor() {
    const cursors = CURSORS[this.dialect];
    return cursors[this.plan.cursor % cursors.length]!;
  }

  #column(choice: number, index: number, treated = true): Column {
    const kinds = KINDS[this.dialect];
    const kind = kinds[choice % kinds.length]!;
    const name = `c${index}${NAMES[(this.plan.names[index % this.plan.names.length] ?? 0) % NAMES.length]}`;
    const wanted = (treated && this.plan.treatments[index]) || 'none';
    const asIs: Column = {
      name,
      kind,
      target: wanted === 'rename' ? `r${index}` : name,
      form: kind.form,
      treatment: 'none',
      destination_type: null,
    };
    if (wanted === 'redact' || (wanted === 'hash_sha256' && kind.form === 'text')) {
      return { ...asIs, treatment: wanted, form: 'text' };
    }
    if (wanted !== 'retype') return asIs;
    const types = kind.written_as ?? ['string'];
    const destination_type = types[choice % types.length]!;
    const form = kind.written_as ? 'decimal' : kind.form;
    return { ...asIs, treatment: 'retype', destination_type, form };
  }

  async #run(statements: string[]): Promise<void> {
    this.statements.push(...statements);
    if (statements.length > 0) await this.place.run(...statements);
  }

  async create(): Promise<void> {
    const { dialect, plan } = this;
    const own = [
      `id ${dialect === 'duckdb' ? 'INTEGER' : 'integer'} not null`,
      `step ${dialect === 'duckdb' ? 'INTEGER' : 'integer'} not null`,
      `k ${KEY_TYPE[dialect]} not null`,
      `moved ${this.cursor.ddl}`,
      ...(plan.wide_kb > 0 ? [`wide ${dialect === 'mysql' ? 'longtext' : 'text'}`] : []),
    ];
    const key = this.keyColumns.length > 0 ? [`primary key (${this.keyColumns.join(', ')})`] : [];
    const columns = this.columns.map(({ name, kind }) => `${nameOf(dialect, name)} ${kind.ddl}`);
    await this.#run([`create table ${nameOf(dialect, this.name)} (${[...own, ...columns, ...key].join(', ')})`]);
  }

  /** Applies the changes of a step, the schema first. */
  async apply(step: Step): Promise<void> {
    this.#step += 1;
    if (this.#step > 1 && step.drift) await this.#drift(step.drift);
    const statements: string[] = [];
    const table = nameOf(this.dialect, this.name);
    for (const gone of this.#step > 1 ? step.deletes : []) {
      const id = this.#existing(gone);
      if (id === null) continue;
      this.#live.delete(id);
      statements.push(`delete from ${table} where id = ${id}`);
    }
    for (const { row, values, tie } of this.#step > 1 ? step.updates : []) {
      const id = this.#existing(row);
      if (id === null) continue;
      const set = Object.entries(this.#cells(values, tie)).map(([name, value]) => `${name} = ${value}`);
      statements.push(`update ${table} set ${set.join(', ')} where id = ${id}`);
    }
    for (const { values, tie } of step.inserts) {
      const id = this.#next++;
      this.#live.add(id);
      const key = KEYS[(id * 7) % 30] ?? `k${id}`;
      const keyText = this.#usedKeys.has(key) ? `k${id}` : key;
      this.#usedKeys.add(keyText);
      const cells = { id: String(id), k: this.#text(keyText), ...this.#cells(values, tie) };
      statements.push(
        `insert into ${table} (${Object.keys(cells).join(', ')}) values (${Object.values(cells).join(', ')})`,
      );
    }
    await this.#run(statements);
  }

  readonly #usedKeys = new Set<string>();

  #text(value: string): string {
    return this.dialect === 'mysql' ? `convert(x'${hexOf(value)}' using utf8mb4)` : quoted(value);
  }

  #existing(choice: number): number | null {
    const ids = [...this.#live];
    return ids.length > 0 ? ids[choice % ids.length]! : null;
  }

  #cells(values: number[], tie: boolean): Record<string, string> {
    const { dialect, plan } = this;
    if (!tie || this.#at === 0) this.#at += 1;
    const cells = this.columns.map(({ name, kind }, index) => {
      const value = valueOf(kind, values[index % values.length] ?? 0, this.#hard);
      return [nameOf(dialect, name), value === null ? 'null' : kind.literal(value)];
    });
    const wide = plan.wide_kb > 0 ? { wide: this.#wide(plan.wide_kb * 1024) } : {};
    return { step: String(this.#step), moved: this.cursor.literal(this.#at), ...wide, ...Object.fromEntries(cells) };
  }

  #wide(bytes: number): string {
    return this.dialect === 'sqlite' ? `hex(zeroblob(${bytes / 2}))` : `repeat('ab', ${bytes / 2})`;
  }

  async #drift({ change, column }: NonNullable<Step['drift']>): Promise<void> {
    const { dialect } = this;
    const table = nameOf(dialect, this.name);
    if (change === 'add') {
      const added = this.#column(column, 10 + this.#step, false);
      this.columns = [...this.columns, added];
      await this.#run([`alter table ${table} add column ${nameOf(dialect, added.name)} ${added.kind.ddl}`]);
      return;
    }
    const at = column % this.columns.length;
    const chosen = this.columns[at];
    if (!chosen) return;
    const name = nameOf(dialect, chosen.name);
    if (change === 'drop') {
      if (this.columns.length < 2) return;
      this.columns = this.columns.filter((one) => one !== chosen);
      await this.#run([`alter table ${table} drop column ${name}`]);
    } else if (chosen.kind.wider && dialect !== 'sqlite') {
      const kind = { ...chosen.kind, ddl: chosen.kind.wider };
      this.columns = this.columns.map((one) => (one === chosen ? { ...one, kind } : one));
      const how = dialect === 'mysql' ? `modify column ${name}` : `alter column ${name} type`;
      await this.#run([`alter table ${table} ${how} ${kind.ddl}`]);
    }
  }

  /** The source's values of the columns as texts, with `id` and `step`; `where`: SQL of the source. */
  async content(where: string[]): Promise<{ columns: Column[]; rows: Texts[] }> {
    const { dialect, columns } = this;
    const wide = this.plan.wide_kb > 0 ? `, length(wide)` : ', 0';
    const list = columns.map(({ name, kind }) => sourceSql(dialect, kind, name)).map((sql) => `, ${sql}`);
    const key = sourceSql(dialect, { form: 'text' } as Kind, 'k');
    const condition = where.length > 0 ? ` where ${where.map((one) => `(${one})`).join(' and ')}` : '';
    const rows = await this.place.rows(
      `select id, step, ${key}${wide}${list.join('')} from ${nameOf(dialect, this.name)}${condition}`,
    );
    return { columns, rows };
  }

  get isIncremental(): boolean {
    return isIncremental(this.plan.mode);
  }
}
