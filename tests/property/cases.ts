import fc from 'fast-check';
import { DUCKDB_KINDS, SQLITE_KINDS } from './file-kinds.ts';
import type { Dialect, Kind } from './kinds.ts';
import { MYSQL_KINDS } from './mysql-kinds.ts';
import { POSTGRES_KINDS } from './postgres-kinds.ts';

export const KINDS: Record<Dialect, readonly Kind[]> = {
  postgres: POSTGRES_KINDS,
  mysql: MYSQL_KINDS,
  duckdb: DUCKDB_KINDS,
  sqlite: SQLITE_KINDS,
};

export interface Pair {
  from: Dialect;
  to: Dialect;
}
const SOURCES: Dialect[] = ['postgres', 'mysql', 'duckdb', 'sqlite'];
const TARGETS: Dialect[] = ['postgres', 'mysql', 'duckdb'];
export const PAIRS: Pair[] = SOURCES.flatMap((from) => TARGETS.map((to) => ({ from, to })));

export const MODES = ['overwrite', 'append', 'incremental append', 'append_dedup'] as const;
export type Mode = (typeof MODES)[number];
export const isIncremental = (mode: Mode) => mode === 'incremental append' || mode === 'append_dedup';

/** The place where an attempt breaks: before or after a call of the writer, or after some batches of the source. */
export interface Crash {
  at: 'source' | 'write' | 'checkpoint' | 'finish';
  when: 'before' | 'after';
  /** Calls that succeed first. */
  calls: number;
}

/** What happens at the source before and during a run. A number selects from a list, modulo the length of the list. */
export interface Step {
  /** Rows: one number per column, which selects a value. `tie`: the row repeats the highest cursor. */
  inserts: { values: number[]; tie: boolean }[];
  updates: { row: number; values: number[]; tie: boolean }[];
  deletes: number[];
  drift: { change: 'add' | 'drop' | 'widen'; column: number } | null;
  crash: Crash | null;
}

export interface Filtering {
  column: number;
  operator: 'eq' | 'ne' | 'gt' | 'lte' | 'in' | 'is_null' | 'is_not_null';
  value: number;
}

export interface Case {
  /** Kinds of the columns, modulo those of the source. */
  columns: number[];
  names: number[];
  mode: Mode;
  key: 'none' | 'id' | 'text' | 'both';
  cursor: number;
  /** Values that not every destination holds. */
  hard: boolean;
  allow_inexact: boolean;
  keep_rejects: boolean;
  /** One text of this many kilobytes in every row, so that batches are many. */
  wide_kb: number;
  checkpoint_kb: number;
  /** The largest batch in rows, and the largest piece in bytes. */
  batch_rows: number;
  lane: 'bytes' | 'rows';
  filters: Filtering[];
  /** For each column: unchanged, renamed, masked, or cast to another type. */
  treatments: ('none' | 'rename' | 'redact' | 'hash_sha256' | 'retype')[];
  steps: Step[];
}

export const MAX_COLUMNS = 6;

const choice = fc.oneof({ weight: 5, arbitrary: fc.nat(80) }, fc.nat(1_000_000));
const values = fc.array(choice, { minLength: MAX_COLUMNS, maxLength: MAX_COLUMNS });
const rarely = <T>(arbitrary: fc.Arbitrary<T>, weight = 3) =>
  fc.oneof({ weight, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });

const crash: fc.Arbitrary<Crash> = fc.record({
  at: fc.constantFrom('source', 'write', 'checkpoint', 'finish'),
  when: fc.constantFrom('before', 'after'),
  calls: fc.nat(3),
});

const step: fc.Arbitrary<Step> = fc.record({
  inserts: fc.array(fc.record({ values, tie: fc.boolean() }), { maxLength: 25 }),
  updates: fc.array(fc.record({ row: fc.nat(100), values, tie: fc.boolean() }), { maxLength: 5 }),
  deletes: fc.array(fc.nat(100), { maxLength: 3 }),
  drift: rarely(fc.record({ change: fc.constantFrom('add', 'drop', 'widen'), column: fc.nat(100) }), 4),
  crash: rarely(crash, 1),
});

const filter: fc.Arbitrary<Filtering> = fc.record({
  column: fc.nat(100),
  operator: fc.constantFrom('eq', 'ne', 'gt', 'lte', 'in', 'is_null', 'is_not_null'),
  value: choice,
});

const treatment = fc.constantFrom('none', 'rename', 'redact', 'hash_sha256', 'retype');

/** Any case. The pair of databases is not part of it, so that a failure shrinks within its pair. */
export const anyCase: fc.Arbitrary<Case> = fc.record({
  columns: fc.array(fc.nat(1000), { minLength: 1, maxLength: MAX_COLUMNS }),
  names: fc.array(fc.nat(100), { minLength: MAX_COLUMNS, maxLength: MAX_COLUMNS }),
  mode: fc.constantFrom(...MODES),
  key: fc.constantFrom('id', 'none', 'text', 'both'),
  cursor: fc.nat(10),
  hard: fc.nat(3).map((n) => n === 1),
  allow_inexact: fc.nat(4).map((n) => n === 1),
  keep_rejects: fc.nat(6).map((n) => n === 1),
  wide_kb: fc.constantFrom(0, 0, 0, 0, 0, 30, 100),
  checkpoint_kb: fc.constantFrom(32_768, 1),
  batch_rows: fc.constantFrom(5000, 1, 2, 3, 7),
  lane: fc.constantFrom('bytes', 'rows'),
  filters: rarely(fc.array(filter, { maxLength: 2 })).map((list) => list ?? []),
  treatments: rarely(fc.array(treatment, { minLength: MAX_COLUMNS, maxLength: MAX_COLUMNS }), 2).map(
    (list) => list ?? [],
  ),
  steps: fc.array(step, { minLength: 1, maxLength: 3 }),
});
