import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';

const AXE = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const PROGRAM = '/usr/bin/chromium';
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export interface Looking {
  width?: number;
  height?: number;
  scheme?: 'light' | 'dark';
}

export interface TestBrowser {
  context: BrowserContext;
  page: Page;
  /** What nobody may see: errors in the console, breaches of the content security policy, requests to other hosts. */
  complaints: string[];
  close(): Promise<void>;
}

/** A real Chromium with a profile of its own, and one page that is watched for complaints. */
export async function openBrowser(address: string, looking: Looking = {}): Promise<TestBrowser> {
  const profile = mkdtempSync(join(tmpdir(), 'data-pipelines-browser-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: PROGRAM,
    args: FLAGS,
    headless: true,
    baseURL: address,
    viewport: { width: looking.width ?? 1280, height: looking.height ?? 860 },
    colorScheme: looking.scheme ?? 'light',
    reducedMotion: 'reduce',
    acceptDownloads: true,
  });
  context.setDefaultTimeout(60_000);
  const page = context.pages()[0] ?? (await context.newPage());
  const complaints: string[] = [];
  watch(page, { address, complaints });
  return {
    context,
    page,
    complaints,
    close: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
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

/** What axe finds of serious or critical faults, in short. It is evaluated, not loaded: the policy stays as it is. */
export async function faultsOf(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const violations = await page.evaluate<Violation[]>(
    "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations)",
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.slice(0, 3).map((node) => `${id}: ${node.html} ${node.failureSummary}`));
}
