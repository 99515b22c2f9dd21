import { openBrowser, signIn } from '../support/browser.ts';
import { median } from './report.ts';
import { type Service, startService } from './service.ts';

/**
 * The console on this machine (needs Chromium): first paint with an empty and with a filled cache, and the frames while
 * an overview of 1,000 connections is scrolled from end to end. Beside it, from the same run, the reference of the API,
 * a page with nothing to fetch. `bun tests/bench/console.ts [rounds]`
 */
const rounds = Number(process.argv[2] ?? 5);
const CONNECTIONS = 1000;

const PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0";
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

async function makeConnections(at: Service): Promise<void> {
  const make = async (path: string, body: object) => (await at.call<{ id: string }>('POST', path, body)).id;
  const connector = (connector_type: string, connector_name: string, parameters: object) =>
    make('/account_connectors', { name: connector_type, connector_type, connector_name, parameters });
  const source_id = await connector('source', 'demo', { rows: 100 });
  const destination_id = await connector('destination', 'file', { path: 'out' });
  for (let number = 1; number <= CONNECTIONS; number += 1) {
    await make('/connections', { name: `Pipeline ${number}`, source_id, destination_id });
  }
}

async function paintOf(address: string, path: string): Promise<{ cold: number; warm: number }> {
  const browser = await openBrowser(address);
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

const service = await startService({ LOG_LEVEL: 'error' });
try {
  const address = service.url;
  await makeConnections(service);
  const paints = { console: [] as { cold: number; warm: number }[], docs: [] as { cold: number; warm: number }[] };
  for (let round = 0; round < rounds; round += 1) {
    paints.console.push(await paintOf(address, '/'));
    paints.docs.push(await paintOf(address, '/docs/api'));
  }
  for (const [name, all] of Object.entries(paints)) {
    const of = (kind: 'cold' | 'warm') => `${Math.round(median(all.map((one) => one[kind])))} ms`;
    console.log(`first paint, ${name.padEnd(8)} ${of('cold')} with an empty cache, ${of('warm')} with a filled one`);
  }
  const browser = await openBrowser(address);
  await signIn(browser, service.api_key);
  await browser.page.getByRole('link', { name: 'Pipeline 1000', exact: true }).waitFor();
  const gaps = (await browser.page.evaluate<number[]>(SCROLL)).toSorted((a, b) => a - b);
  const at = (part: number) => gaps[Math.min(gaps.length - 1, Math.floor(gaps.length * part))]!.toFixed(1);
  const rows = await browser.page.locator('.connections-list li').count();
  console.log(
    `${CONNECTIONS} connections, ${gaps.length} frames: median ${at(0.5)} ms, p95 ${at(0.95)} ms, worst ${at(1)} ms; ${rows} rows in the page`,
  );
  await browser.close();
} finally {
  await service.stop();
}
