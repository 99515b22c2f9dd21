import { createHash } from 'node:crypto';
import { and, between, desc, eq, getTableColumns, gt, sql } from 'drizzle-orm';
import { type AuditSealRow, auditEvents, auditSeals } from '../../../db/schema/index.ts';
import { findsAny, type Question } from '../../../db/ask-together.ts';
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

/** Entries without an account, such as requests with an unknown key. */
const NO_ACCOUNT = 'none';
/** Seals of versions whose chain had the entries of all accounts. Those entries are sealed once more by account. */
const INSTALLATION = 'installation';

type Sealed = Pick<AuditSealRow, 'id' | 'chain' | 'previous' | 'hash'>;

function macOf(secrets: Secrets, { id, chain, previous, hash }: Sealed): string {
  return secrets.hmac(AUDIT_SEAL, sealedText({ id, chain, previous, hash }));
}

/** The root whose MAC the seal has. Null: it was forged. */
const rootOf = (secrets: Secrets, seal: AuditSealRow) => secrets.versionOf(seal.mac, AUDIT_SEAL, sealedText(seal));

const AUDIT_SEAL = 'audit_seal';

function sealedText({ id, chain, previous, hash }: Sealed): string {
  const place = chain === INSTALLATION ? [id] : [id, chain, previous ?? 0];
  return [...place, hash].join(' ');
}

const ANY_UNSEALED: Question = { name: 'unsealed entries', query: () => sql`select seq from audit_unsealed limit 1` };

/**
 * Seals the entries that were committed since the last seals. With AUDIT_LOG_LINES it logs them as JSON lines, then each
 * seal. Entries are logged at least once: those of a seal that could not be stored are logged again. Any number of
 * processes may call it at once. Returns the number of entries.
 */
export async function sealAudit(deps: Deps): Promise<number> {
  if (!(await findsAny(deps.db, ANY_UNSEALED))) return 0;
  let sealed = 0;
  for (;;) {
    const count = await deps.db.transaction((tx) => sealBatch(tx, deps));
    sealed += count;
    if (count < BATCH) return sealed;
  }
}

/** Entries of one account that no seal covers yet. */
interface Unsealed extends Record<string, unknown> {
  chain: string;
  seqs: string;
  first: string;
  last: string;
  count: number;
}

async function sealBatch(tx: Db, deps: Deps): Promise<number> {
  const [lock] = await tx.execute<{ taken: boolean; root: number }>(sql`
    select pg_try_advisory_xact_lock(${LOCK}) as taken, coalesce((select root_version from installation), 1) as root`);
  // A process that does not know of a new root yet leaves the entries to others: no seal of a former root comes later.
  if (!lock?.taken || lock.root !== deps.secrets.version) return 0;
  // An array: the statistics are those of an empty table, by which the server would select once for each entry.
  const oldest = sql`array(select seq from audit_unsealed order by seq limit ${BATCH})`;
  const parts = await tx.execute<Unsealed>(sql`
    with taken as (delete from audit_unsealed where seq = any(${oldest}) returning seq)
    select coalesce(account_id::text, ${NO_ACCOUNT}) as chain, range_agg(int8range(seq, seq, '[]'))::text as seqs,
      min(seq) as first, max(seq) as last, count(*)::int as count
    from taken join audit_events using (seq) group by 1 order by 1`);
  if (parts.length === 0) return 0;
  const [newest] = await tx.select({ id: auditSeals.id }).from(auditSeals).orderBy(desc(auditSeals.id)).limit(1);
  let id = newest?.id ?? 0;
  for (const part of parts) await sealPart(tx, deps, { part, id: (id += 1) });
  return parts.reduce((sum, { count }) => sum + count, 0);
}

async function sealPart(tx: Db, deps: Deps, { part, id }: { part: Unsealed; id: number }): Promise<void> {
  const { chain, seqs, count } = part;
  const covered = { seqs, first_seq: Number(part.first), last_seq: Number(part.last) };
  const entries = await entriesBetween(tx, covered);
  const ofChain = eq(auditSeals.chain, chain);
  const [last] = await tx.select().from(auditSeals).where(ofChain).orderBy(desc(auditSeals.id)).limit(1);
  const seal = { id, chain, previous: last?.id ?? null, hash: hashOf(last?.hash ?? '', entries) };
  await tx.insert(auditSeals).values({ ...covered, ...seal, mac: macOf(deps.secrets, seal) });
  const { log, config } = deps;
  if (!config.AUDIT_LOG_LINES) return;
  // Whatever the level of the log: a log collector is to receive all of them.
  const lines = log.child({}, log.level === 'silent' ? {} : { level: 'info' });
  for (const one of entries) lines.info({ audit: presentEntry(parsed(one)) }, 'audit');
  lines.info({ audit_seal: { ...seal, entries: count, last_entry: part.last } }, 'audit seal');
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

type Anchor = { seal: number; hash: string } | null;
type Found = Pick<Deps, 'db' | 'secrets'>;

/**
 * Checks the chain of one account, and reads and counts nothing else. `anchor`: the head of an earlier verification or of
 * the log.
 */
export const verifyAccountAudit = (found: Found, account_id: string, anchor: Anchor): Promise<AuditVerification> =>
  verify(found, account_id, anchor);

/**
 * Checks the chains of all accounts, and that no seal is missing between them. The hash of the head covers all seals.
 */
export const verifyAudit = (found: Found, anchor: Anchor): Promise<AuditVerification> => verify(found, null, anchor);

async function verify({ db, secrets }: Found, chain: string | null, anchor: Anchor): Promise<AuditVerification> {
  const problems: AuditProblem[] = [];
  const totals = { seals: 0, entries: 0 };
  const digest = createHash('sha256');
  const lasts = new Map<string, LastSeal>();
  let head: AuditVerification['head'] = null;
  let isAnchored = anchor === null || (chain !== null && (await isOfInstallation(db, anchor)));
  for (let page: AuditSealRow[] = []; (page = await sealsAfter(db, chain, page.at(-1)?.id ?? 0)).length > 0; ) {
    for (const seal of page) {
      const entries = await entriesBetween(db, seal);
      const isNext = chain !== null || seal.id === (head?.seal ?? 0) + 1;
      const root = rootOf(secrets, seal);
      const last = lasts.get(seal.chain);
      const problem = isNext ? problemOf(seal, { entries, last, root }) : 'seal_missing';
      if (problem) problems.push(about(seal, problem));
      digest.update(`${seal.id} ${seal.hash}\n`);
      head = { seal: seal.id, hash: chain === null ? digest.copy().digest('hex') : seal.hash };
      if (anchor?.seal === seal.id) {
        if (![head.hash, seal.hash].includes(anchor.hash)) problems.push(about(seal, 'anchor_differs'));
        isAnchored = true;
      }
      totals.seals += 1;
      // Seals of the installation cover entries that the seals of the accounts cover, too.
      if (seal.chain !== INSTALLATION) totals.entries += entries.length;
      lasts.set(seal.chain, { ...seal, root: root ?? last?.root ?? 1 });
    }
  }
  if (anchor && !isAnchored) problems.push({ ...NO_ENTRIES, seal: anchor.seal, problem: 'seal_missing' });
  const { unsealed, added } = await outside(db, chain);
  if (added) problems.push({ seal: null, ...added, problem: 'entries_added' });
  const is_intact = problems.length === 0;
  return { is_intact, ...totals, unsealed, head, problems: problems.slice(0, MAX_PROBLEMS) };
}

const NO_ENTRIES = { first_entry: '', last_entry: '' };

const sealsAfter = (db: Db, chain: string | null, id: number): Promise<AuditSealRow[]> =>
  db
    .select()
    .from(auditSeals)
    .where(and(gt(auditSeals.id, id), chain === null ? undefined : eq(auditSeals.chain, chain)))
    .orderBy(auditSeals.id)
    .limit(SEALS_AT_ONCE);

/** Anchors of earlier versions name seals over all accounts. */
async function isOfInstallation(db: Db, anchor: { seal: number; hash: string }): Promise<boolean> {
  const { id, chain, hash } = auditSeals;
  const same = and(eq(id, anchor.seal), eq(chain, INSTALLATION), eq(hash, anchor.hash));
  return (await db.select({ id }).from(auditSeals).where(same)).length > 0;
}

const about = (seal: AuditSealRow, problem: AuditProblem['problem']): AuditProblem => ({
  seal: seal.id,
  first_entry: String(seal.first_seq),
  last_entry: String(seal.last_seq),
  problem,
});

/** A seal with the version of the root that made it. */
type LastSeal = AuditSealRow & { root: number };

function problemOf(
  seal: AuditSealRow,
  found: { entries: readonly HashedEntry[]; last: LastSeal | undefined; root: number | null },
): AuditProblem['problem'] | null {
  const previous = seal.chain === INSTALLATION ? seal.id - 1 : (seal.previous ?? 0);
  if (previous !== (found.last?.id ?? 0)) return 'seal_missing';
  // After a rotation, a seal of the former root was made by somebody who has that root.
  if ((found.root ?? 0) < (found.last?.root ?? 1)) return 'seal_forged';
  return seal.hash === hashOf(found.last?.hash ?? '', found.entries) ? null : 'entries_changed';
}

/** Entries that no seal covers: those that wait for the sealer, and others. */
async function outside(db: Db, chain: string | null) {
  const ofChain = chain === null ? sql`true` : sql`chain = ${chain}`;
  const ofAccount = chain === null ? sql`true` : sql`e.account_id = ${chain}`;
  const [row] = await db.execute<{ unsealed: number; first: string | null; last: string | null }>(sql`
    with sealed as (
      select coalesce(range_agg(one), '{}') as seqs from audit_seals, lateral unnest(audit_seals.seqs) as one
      where ${ofChain}),
    loose as (
      select seq, exists (select from audit_unsealed u where u.seq = e.seq) as waits from audit_events e
      where ${ofAccount} and not (e.seq <@ (select seqs from sealed)))
    select count(*) filter (where waits)::int as unsealed, min(seq) filter (where not waits) as first,
      max(seq) filter (where not waits) as last
    from loose`);
  const { unsealed = 0, first = null, last = null } = row ?? {};
  return { unsealed, added: first === null ? null : { first_entry: first, last_entry: String(last) } };
}
