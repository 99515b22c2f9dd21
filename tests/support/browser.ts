import { readFileSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page, type Request } from 'playwright-core';
import { atEnd } from './at-end.ts';
import { faintTexts } from './contrast.ts';

const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const PROGRAM = '/usr/bin/chromium-headless-shell';
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Its last tier compiles for long runs. It took a fifth of the processor time of tests that open many pages.
  '--js-flags=--no-opt',
];

let launched: Promise<Browser> | null = null;

/** One Chromium for all profiles, until the steps at the end. */
async function launch(): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: PROGRAM, args: FLAGS, headless: true });
  // A test that passes its limit of time ends all children of its process.
  browser.on('disconnected', () => (launched = null));
  atEnd(() => browser.close());
  return browser;
}

export interface Looking {
  width?: number;
  height?: number;
  scheme?: 'light' | 'dark';
}

export interface TestBrowser {
  context: BrowserContext;
  page: Page;
  /** Errors in the console, violations of the content security policy, requests to other hosts. None may appear. */
  complaints: string[];
  close(): Promise<void>;
}

/** A separate profile in a real Chromium, with one page that is watched for complaints. */
export async function openBrowser(address: string, looking: Looking = {}): Promise<TestBrowser> {
  const browser = await (launched ??= launch());
  const context = await browser.newContext({
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

/** A test that waits for an answer in vain shows nothing of it. */
const SLOW_MS = 30_000;

function watch(page: Page, { address, complaints }: { address: string; complaints: string[] }): void {
  const waiting = new Map<Request, Timer>();
  const answered = (request: Request) => {
    clearTimeout(waiting.get(request));
    waiting.delete(request);
  };
  page.on('response', (response) => answered(response.request()));
  page.on('requestfailed', answered);
  page.on('pageerror', (error) => complaints.push(`error: ${error.stack ?? error.message}`));
  page.on('console', (message) => {
    // Chromium itself reports each refused call. The tests look at what the console shows for it.
    const isRefusedCall = message.text().startsWith('Failed to load resource');
    if (['error', 'warning'].includes(message.type()) && !isRefusedCall) complaints.push(message.text());
  });
  page.on('request', (request) => {
    const url = request.url();
    const timer = setTimeout(() => console.error(`no answer after ${SLOW_MS / 1000} s: ${url}`), SLOW_MS);
    waiting.set(request, timer.unref());
    if (!url.startsWith(address) && !/^(data|blob|about):/.test(url)) complaints.push(`request to ${url}`);
  });
}

/** Signs in with the key on the current page. */
export async function signIn({ page }: Pick<TestBrowser, 'page'>, key: string): Promise<void> {
  if (page.url() === 'about:blank') await page.goto('/');
  await page.getByRole('textbox', { name: 'API key' }).fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('textbox', { name: 'API key' }).waitFor({ state: 'detached' });
  await page.locator('#main').waitFor();
}

/** Goes to a page of the console as its links do: to load everything once more takes three times as long. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)})`);
}

interface Violation {
  id: string;
  nodes: { html: string; failureSummary: string }[];
}

/** Which rules are applied: those about colors depend on the scheme, all others on the elements alone. */
export type Rules = 'all' | 'colors';

/**
 * Without the rules whose violations `faultsOf` leaves out, and without axe's own rule about contrast, which takes half
 * of its time: `faintTexts` takes a tenth. Without `preload`, which reads all style sheets once more for unused rules.
 */
const RUN_AXE = `axe.run(document, {
  resultTypes: ['violations'],
  preload: false,
  runOnly: axe._audit.rules
    .filter(({ enabled, impact, id }) => enabled && ['serious', 'critical'].includes(impact) && id !== 'color-contrast')
    .map(({ id }) => id),
}).then(({ violations }) => violations)`;

/** Serious and critical violations on the page, in short. Axe is evaluated, not loaded: the policy stays as it is. */
export async function faultsOf(page: Page, rules: Rules = 'all'): Promise<string[]> {
  const faint = await faintTexts(page);
  if (rules === 'colors') return faint;
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(AXE);
  const violations = await page.evaluate<Violation[]>(RUN_AXE);
  const found = violations.flatMap(({ id, nodes }) =>
    nodes.slice(0, 3).map((node) => `${id}: ${node.html} ${node.failureSummary}`),
  );
  return [...faint, ...found];
}
