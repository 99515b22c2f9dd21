import { createHash } from 'node:crypto';
import { and, between, desc, getTableColumns, sql } from 'drizzle-orm';
import { type AuditSealRow, auditEvents, auditSeals } from '../../../db/schema/index.ts';
import type { Db } from '../../../db/types.ts';
import type { Deps } from '../../deps.ts';
import type { Secrets } from '../../platform/secrets.ts';
import { presentEntry } from './entry.ts';

const LOCK = 7_300_011;
/** Entries of one seal. */
const BATCH = 1000;

/** JSON columns as the database stores them: parsed numbers could differ. */
const textOf = (column: 'before' | 'after' | 'details') => sql<string | null>`${auditEvents[column]}::text`;
const hashed = {
  ...getTableColumns(auditEvents),
  before: textOf('before'),
  after: textOf('after'),
  details: textOf('details'),
};

const entriesBetween = (db: Db, { seqs, first_seq, last_seq }: Pick<AuditSealRow, 'seqs' | 'first_seq' | 'last_seq'>) =>
  db
    .select(hashed)
    .from(auditEvents)
    .where(and(between(auditEvents.seq, first_seq, last_seq), sql`${auditEvents.seq} <@ ${seqs}::int8multirange`))
    .orderBy(auditEvents.seq);
type HashedEntry = Awaited<ReturnType<typeof entriesBetween>>[number];

/**
 * The entries one after the other, each with the columns in this order. A later column must come last, and only where it
 * has a value, so that older seals stay valid.
 */
function hashOf(previous: string, entries: readonly HashedEntry[]): string {
  const hash = createHash('sha256').update(`${previous}\n`);
  for (const one of entries) {
    const columns = [
      one.seq,
      one.account_id,
      one.occurred_at,
      one.kind,
      one.action,
      one.outcome,
      one.code,
      one.actor_type,
      one.actor_id,
      one.actor_name,
      one.api_key_id,
      one.session_id,
      one.address,
      one.user_agent,
      one.request_id,
      one.resource_type,
      one.resource_id,
      one.resource_name,
      one.operation,
      one.before,
      one.after,
      one.details,
      one.count,
    ];
    hash.update(`${JSON.stringify(columns)}\n`);
  }
  return hash.digest('hex');
}

const macOf = (secrets: Secrets, { id, hash }: { id: number; hash: string }) =>
  secrets.hmac('audit_seal', `${id} ${hash}`);

/**
 * Seals the entries that were committed since the last seal, and logs them as JSON lines, then the seal. Entries are
 * logged at least once: those of a seal that could not be stored are logged again. Any number of processes may call it at
 * once. Returns the number of entries.
 */
export async function sealAudit(deps: Deps): Promise<number> {
  let sealed = 0;
  for (;;) {
    const count = await deps.db.transaction((tx) => sealBatch(tx, deps));
    sealed += count;
    if (count < BATCH) return sealed;
  }
}

async function sealBatch(tx: Db, { secrets, log }: Deps): Promise<number> {
  const [lock] = await tx.execute<{ taken: boolean }>(sql`select pg_try_advisory_xact_lock(${LOCK}) as taken`);
  if (!lock?.taken) return 0;
  const [range] = await tx.execute<{ seqs: string | null; first: string; last: string; count: number }>(sql`
    with taken as (
      delete from audit_unsealed where seq in (select seq from audit_unsealed order by seq limit ${BATCH}) returning seq)
    select range_agg(int8range(seq, seq, '[]'))::text as seqs, min(seq) as first, max(seq) as last, count(*)::int as count
    from taken`);
  if (!range || range.seqs === null) return 0;
  const covered = { seqs: range.seqs, first_seq: Number(range.first), last_seq: Number(range.last) };
  const entries = await entriesBetween(tx, covered);
  const [last] = await tx.select().from(auditSeals).orderBy(desc(auditSeals.id)).limit(1);
  const seal = { id: (last?.id ?? 0) + 1, hash: hashOf(last?.hash ?? '', entries) };
  await tx.insert(auditSeals).values({ ...covered, ...seal, mac: macOf(secrets, seal) });
  // Whatever the level of the log: a log collector is to receive all of them.
  const lines = log.child({}, log.level === 'silent' ? {} : { level: 'info' });
  for (const one of entries) lines.info({ audit: presentEntry(parsed(one)) }, 'audit');
  lines.info({ audit_seal: { ...seal, entries: range.count, last_entry: String(covered.last_seq) } }, 'audit seal');
  return range.count;
}

const parsed = ({ before, after, details, ...row }: HashedEntry) => ({
  ...row,
  before: objectIn(before),
  after: objectIn(after),
  details: objectIn(details),
});
const objectIn = (text: string | null) => (text === null ? null : (JSON.parse(text) as Record<string, unknown>));

export interface AuditProblem {
  /** Null: entries that no seal covers. */
  seal: number | null;
  first_entry: string;
  last_entry: string;
  problem: 'seal_missing' | 'seal_forged' | 'entries_changed' | 'entries_added' | 'anchor_differs';
}

export interface AuditVerification {
  is_intact: boolean;
  seals: number;
  entries: number;
  /** Entries of the last seconds, which are not sealed yet. */
  unsealed: number;
  /** Of the last seal. Kept elsewhere, it proves later that nothing up to it was removed. */
  head: { seal: number; hash: string } | null;
  /** The first ones. */
  problems: AuditProblem[];
}

const MAX_PROBLEMS = 100;
const SEALS_AT_ONCE = 100;

/** Checks the whole chain. `anchor`: the head of an earlier verification or of the log. */
export async function verifyAudit(
  { db, secrets }: Pick<Deps, 'db' | 'secrets'>,
  anchor: { seal: number; hash: string } | null,
): Promise<AuditVerification> {
  const problems: AuditProblem[] = [];
  const totals = { seals: 0, entries: 0 };
  let head: AuditVerification['head'] = null;
  let previous = '';
  for (let page: AuditSealRow[] = []; (page = await sealsAfter(db, page.at(-1)?.id ?? 0)).length > 0; ) {
    for (const seal of page) {
      const entries = await entriesBetween(db, seal);
      const problem = problemOf(seal, { entries, previous, expected: (head?.seal ?? 0) + 1, secrets });
      if (problem) problems.push(about(seal, problem));
      if (anchor?.seal === seal.id && anchor.hash !== seal.hash) problems.push(about(seal, 'anchor_differs'));
      totals.seals += 1;
      totals.entries += entries.length;
      head = { seal: seal.id, hash: seal.hash };
      previous = seal.hash;
    }
  }
  if (anchor && anchor.seal > (head?.seal ?? 0)) {
    problems.push({ seal: anchor.seal, first_entry: '', last_entry: '', problem: 'seal_missing' });
  }
  const { unsealed, added } = await outside(db);
  if (added) problems.push({ seal: null, ...added, problem: 'entries_added' });
  const is_intact = problems.length === 0;
  return { is_intact, ...totals, unsealed, head, problems: problems.slice(0, MAX_PROBLEMS) };
}

const sealsAfter = (db: Db, id: number): Promise<AuditSealRow[]> =>
  db.select().from(auditSeals).where(sql`${auditSeals.id} > ${id}`).orderBy(auditSeals.id).limit(SEALS_AT_ONCE);

const about = (seal: AuditSealRow, problem: AuditProblem['problem']): AuditProblem => ({
  seal: seal.id,
  first_entry: String(seal.first_seq),
  last_entry: String(seal.last_seq),
  problem,
});

function problemOf(
  seal: AuditSealRow,
  found: { entries: readonly HashedEntry[]; previous: string; expected: number; secrets: Secrets },
): AuditProblem['problem'] | null {
  if (seal.id !== found.expected) return 'seal_missing';
  if (seal.mac !== macOf(found.secrets, seal)) return 'seal_forged';
  return seal.hash === hashOf(found.previous, found.entries) ? null : 'entries_changed';
}

/** Entries that no seal covers: those that wait for the sealer, and others. */
async function outside(db: Db) {
  const [row] = await db.execute<{ unsealed: number; first: string | null; last: string | null }>(sql`
    with sealed as (
      select coalesce(range_agg(one), '{}') as seqs from audit_seals, lateral unnest(audit_seals.seqs) as one),
    loose as (
      select seq, exists (select from audit_unsealed u where u.seq = e.seq) as waits from audit_events e
      where not (e.seq <@ (select seqs from sealed)))
    select count(*) filter (where waits)::int as unsealed, min(seq) filter (where not waits) as first,
      max(seq) filter (where not waits) as last
    from loose`);
  const { unsealed = 0, first = null, last = null } = row ?? {};
  return { unsealed, added: first === null ? null : { first_entry: first, last_entry: String(last) } };
}
