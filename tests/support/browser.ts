import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { until } from './until.ts';
import { watchOver } from './watchdog.ts';

const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const PROGRAM = '/usr/bin/chromium';
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-extensions-with-background-pages',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-extensions',
  '--disable-search-engine-choice-screen',
  '--disable-sync',
  '--force-color-profile=srgb',
  '--password-store=basic',
  // Tests share the browser: a page behind others is one that a test waits for.
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
  '--disable-ipc-flooding-protection',
  // Processes held in reserve cost more than the pages of the console.
  '--disable-features=SpareRendererForSitePerProcess,PaintHolding,MediaRouter,OptimizationHints',
  // Processes and windows in reserve cost more than the pages of the console.
];

export interface Chromium {
  /** Where its DevTools protocol is served. */
  url: string;
  stop(): Promise<void>;
}

/** A real Chromium that ends with this process. */
export async function startChromium(): Promise<Chromium> {
  const profile = mkdtempSync(join(tmpdir(), 'data-pipelines-browser-'));
  const flags = [...FLAGS, '--remote-debugging-port=0', `--user-data-dir=${profile}`];
  const child = Bun.spawn([PROGRAM, ...flags, 'about:blank'], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' });
  child.unref();
  watchOver(child, profile);
  const portFile = join(profile, 'DevToolsActivePort');
  const listening = () => (existsSync(portFile) ? readFileSync(portFile, 'utf8').split('\n') : []);
  await until(() => child.exitCode !== null || listening().length === 2, { what: 'Chromium listens' });
  const [port, path] = listening();
  if (!path) throw new Error(`${PROGRAM} ended with code ${child.exitCode}`);
  const stop = async () => {
    child.kill();
    await child.exited;
    rmSync(profile, { recursive: true, force: true });
  };
  return { url: `ws://127.0.0.1:${port}${path}`, stop };
}

let connected: Promise<Browser> | null = null;

/** A connection to the Chromium of the whole test run (TEST_CHROMIUM_URL), else to one of this process. */
async function connect(): Promise<Browser> {
  const url = process.env.TEST_CHROMIUM_URL ?? (await startChromium()).url;
  return chromium.connectOverCDP(url);
}

export interface Looking {
  width?: number;
  height?: number;
  scheme?: 'light' | 'dark';
}

export interface TestBrowser {
  context: BrowserContext;
  page: Page;
  /** What must not appear: errors in the console, breaches of the content security policy, requests to other hosts. */
  complaints: string[];
  close(): Promise<void>;
}

/** A profile of its own in a real Chromium, and one page that is watched for complaints. */
export async function openBrowser(address: string, looking: Looking = {}): Promise<TestBrowser> {
  connected ??= connect();
  const context = await (await connected).newContext({
    baseURL: address,
    viewport: { width: looking.width ?? 1280, height: looking.height ?? 860 },
    colorScheme: looking.scheme ?? 'light',
    reducedMotion: 'reduce',
    acceptDownloads: true,
  });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  watch(page, { address, complaints });
  return { context, page, complaints, close: () => context.close() };
}

function watch(page: Page, { address, complaints }: { address: string; complaints: string[] }): void {
  page.on('pageerror', (error) => complaints.push(`error: ${error.stack ?? error.message}`));
  page.on('console', (message) => {
    // Chromium itself reports each refused call; what the console makes of it is what is tested.
    const isRefusedCall = message.text().startsWith('Failed to load resource');
    if (['error', 'warning'].includes(message.type()) && !isRefusedCall) complaints.push(message.text());
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(address) && !/^(data|blob|about):/.test(url)) complaints.push(`request to ${url}`);
  });
}

/** Types the key into the form of whatever page it stands before. */
export async function signIn({ page }: Pick<TestBrowser, 'page'>, key: string): Promise<void> {
  if (page.url() === 'about:blank') await page.goto('/');
  await page.getByRole('textbox', { name: 'API key' }).fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('textbox', { name: 'API key' }).waitFor({ state: 'detached' });
  await page.locator('#main').waitFor();
}

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

/** Which of axe's rules are applied: colors are half of the work, and depend on the scheme alone. */
export type Rules = 'all' | 'colors' | 'all but colors';

const AXE_RULES: Record<Rules, object> = {
  all: {},
  colors: { runOnly: ['color-contrast'] },
  'all but colors': { rules: { 'color-contrast': { enabled: false } } },
};

/** Serious and critical violations that axe finds, in short. Axe is evaluated, not loaded: the policy stays as it is. */
export async function faultsOf(page: Page, rules: Rules = 'all'): Promise<string[]> {
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(AXE);
  // Without `preload`, which reads all style sheets once more for rules that are not used.
  const options = JSON.stringify({ resultTypes: ['violations'], preload: false, ...AXE_RULES[rules] });
  const violations = await page.evaluate<Violation[]>(
    `axe.run(document, ${options}).then((found) => found.violations)`,
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.slice(0, 3).map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}
