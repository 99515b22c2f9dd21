import postgres from 'postgres';
import { runEndSteps } from '../support/at-end.ts';
import { openBrowser, signIn, type TestBrowser } from '../support/browser.ts';
import { fillAccount } from '../support/large-account.ts';
import { startCluster } from './cluster.ts';
import { median, verdict } from './report.ts';
import { type Service, startService } from './service.ts';

/**
 * The console on this machine with 10,000 connections: first paint with an empty and with a filled cache, beside the
 * reference of the API, a page with nothing to fetch; how long the command palette takes to open and to answer each key;
 * and the frames while the list of connections is scrolled from end to end. Needs Chromium and Debian's postgresql-15.
 * `bun tests/bench/console.ts [rounds] [connections]`
 */
const rounds = Number(process.argv[2] ?? 5);
const CONNECTIONS = Number(process.argv[3] ?? 10_000);
const PAINT_GOAL_MS = 300;
const PALETTE_GOAL_MS = 50;
const TYPED = 'large 7777';

const PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0";
/** Runs after the frame that shows what `act` did. */
const AFTER_FRAME = `const afterFrame = (act) => new Promise((resolve) => {
  const began = performance.now();
  act();
  const shown = () => requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
  const wait = () => (document.querySelector('.palette-list') ? shown() : requestAnimationFrame(wait));
  wait();
});`;
const OPEN = `{ ${AFTER_FRAME}
  afterFrame(() => window.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }))) }`;
/** Types as React hears it: by the setter of the element and an event that bubbles. */
const TYPE = (text: string) => `{ ${AFTER_FRAME}
  const input = document.querySelector('.palette input');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  afterFrame(() => { set.call(input, ${JSON.stringify(text)}); input.dispatchEvent(new Event('input', { bubbles: true })); }) }`;
/** Milliseconds between frames while the page scrolls to its end. */
const SCROLL = `new Promise((resolve) => {
  const gaps = [];
  let last = performance.now();
  const step = (now) => {
    gaps.push(now - last);
    last = now;
    window.scrollBy(0, 400);
    if (window.scrollY + window.innerHeight >= document.documentElement.scrollHeight - 1) resolve(gaps.slice(1));
    else requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})`;

/** An account with one connection that was created by the API, and the others by SQL. */
async function fill(at: Service, url: string): Promise<void> {
  const make = async (path: string, body: object) => (await at.call<{ id: string }>('POST', path, body)).id;
  const connector = (connector_type: string, connector_name: string, parameters: object) =>
    make('/account_connectors', { name: connector_type, connector_type, connector_name, parameters });
  const source_id = await connector('source', 'demo', { rows: 100 });
  const destination_id = await connector('destination', 'file', { path: 'out' });
  const connection_id = await make('/connections', { name: 'Pipeline', source_id, destination_id });
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const [known] = await sql`
    select accounts.id as account_id, connection_streams.id as stream_id, triggers.id as trigger_id
    from accounts join connection_streams on connection_streams.account_id = accounts.id
      join triggers on triggers.account_id = accounts.id limit 1`;
  if (!known) throw new Error('the account has no stream or no trigger');
  const roots = { ...(known as unknown as { account_id: string; stream_id: string; trigger_id: string }) };
  const size = { connections: CONNECTIONS, runs: CONNECTIONS, events: CONNECTIONS };
  await fillAccount(sql, { ...roots, destination_id, connection_id }, size);
  await sql.end();
}

/** @param key signs in first. */
async function paintOf(address: string, path: string, key?: string): Promise<{ cold: number; warm: number }> {
  const browser = await openBrowser(address);
  if (key !== undefined) await signIn(browser, key);
  const look = async () => {
    await browser.page.goto(path, { waitUntil: 'load' });
    await browser.page.waitForTimeout(300);
    return browser.page.evaluate<number>(PAINT);
  };
  const cold = await look();
  const warm = await look();
  await browser.close();
  return { cold, warm };
}

async function measurePaints(service: Service): Promise<void> {
  const pages: Record<string, () => Promise<{ cold: number; warm: number }>> = {
    'the sign-in page': () => paintOf(service.url, '/'),
    // The cache has the bundle from the page of the sign-in.
    'the overview, signed in': () => paintOf(service.url, '/', service.api_key),
    'the reference of the API': () => paintOf(service.url, '/docs/api'),
  };
  const paints = Object.keys(pages).map((name) => ({ name, all: [] as { cold: number; warm: number }[] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, all } of paints) all.push(await pages[name]!());
  }
  for (const { name, all } of paints) {
    const [cold, warm] = (['cold', 'warm'] as const).map((kind) => median(all.map((one) => one[kind])));
    const text = `first paint of ${name}: ${cold!.toFixed(0)} ms, again ${warm!.toFixed(0)} ms`;
    verdict(Math.max(cold!, warm!) <= PAINT_GOAL_MS, `${text}, goal ${PAINT_GOAL_MS}`);
  }
}

/** The palette on the list of connections, which has loaded all of them; then without, on a page that has not. */
async function measurePalette({ page }: TestBrowser): Promise<void> {
  const opened: number[] = [];
  const keys: number[] = [];
  const first = await page.evaluate<number>(OPEN);
  for (let round = 0; round < rounds; round += 1) {
    for (let end = 1; end <= TYPED.length; end += 1) {
      keys.push(await page.evaluate<number>(TYPE(TYPED.slice(0, end))));
    }
    await page.getByRole('button', { name: /^large 7777/ }).waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.palette').waitFor({ state: 'detached' });
    opened.push(await page.evaluate<number>(OPEN));
  }
  await page.keyboard.press('Escape');
  await page.locator('.palette').waitFor({ state: 'detached' });
  const sorted = keys.toSorted((a, b) => a - b);
  const p95 = sorted[Math.floor(sorted.length * 0.95)]!;
  console.log(`palette of ${CONNECTIONS} connections: opened in ${first.toFixed(0)} ms the first time`);
  verdict(
    median(opened) <= PALETTE_GOAL_MS,
    `opened again in ${median(opened).toFixed(1)} ms, goal ${PALETTE_GOAL_MS}`,
  );
  const answered = `${median(keys).toFixed(1)} ms (median), ${p95.toFixed(1)} (p95), ${sorted.at(-1)!.toFixed(1)} (worst)`;
  verdict(
    p95 <= PALETTE_GOAL_MS,
    `a key shown after ${answered} of ${keys.length} keys, goal ${PALETTE_GOAL_MS} at p95`,
  );
}

async function measureScrolling({ page }: TestBrowser): Promise<void> {
  const gaps = (await page.evaluate<number[]>(SCROLL)).toSorted((a, b) => a - b);
  const at = (part: number) => gaps[Math.min(gaps.length - 1, Math.floor(gaps.length * part))]!.toFixed(1);
  const rows = await page.locator('.connections-list li').count();
  console.log(
    `${CONNECTIONS} connections, ${gaps.length} frames: median ${at(0.5)} ms, p95 ${at(0.95)} ms, worst ${at(1)} ms; ${rows} rows in the page`,
  );
}

const cluster = await startCluster();
cluster.psql('postgres', 'create database control');
const url = cluster.url('control');
const SECRET_KEY = 'a secret key that only this bench uses, 0123456789';
const service = await startService({ LOG_LEVEL: 'error', DATABASE_URL: url, SECRET_KEY });
try {
  await fill(service, url);
  await measurePaints(service);
  const browser = await openBrowser(service.url);
  await signIn(browser, service.api_key);
  await browser.page.goto('/console/connections');
  await browser.page.locator('.connections-list li').first().waitFor();
  await measurePalette(browser);
  await measureScrolling(browser);
  await browser.close();
} finally {
  await service.stop();
  await cluster.stop();
  // The browser.
  await runEndSteps();
}
