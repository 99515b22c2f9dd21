import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'bun:test';
import type { Page } from 'playwright-core';
import type { Config } from '../../server/platform/config.ts';
import { createApp } from '../../server/http/app.ts';
import { CONSOLE_HEADER } from '../../server/http/session.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from './api.ts';
import { type Looking, openBrowser, type TestBrowser } from './browser.ts';
import { testDeps } from './database.ts';

/** One bundle for all tests: the service finds it by the fingerprint of its sources. */
const BUNDLES = join(import.meta.dir, '../../node_modules/.cache/console');

/** The whole service on a free port with a worker, for a browser to look at. */
export async function startConsole(config: Partial<Config> = {}) {
  const service = await testDeps({ role: 'worker', config });
  mkdirSync(BUNDLES, { recursive: true });
  symlinkSync(BUNDLES, join(service.deps.config.DATA_DIR, 'console'));
  const app = createApp(service.deps).listen({ hostname: '127.0.0.1', port: 0 });
  const worker = await startWorker(service.deps);
  const browsers: TestBrowser[] = [];
  afterAll(async () => {
    await Promise.all(browsers.map((browser) => browser.close()));
    await app.server?.stop(true);
    await worker.stop();
  });
  const address = `http://127.0.0.1:${app.server!.port}`;
  const browser = async ({ address: seen = address, ...looking }: Looking & { address?: string } = {}) => {
    const opened = await openBrowser(seen, looking);
    browsers.push(opened);
    return opened;
  };
  return {
    service,
    api: testApi(service),
    address,
    /** A browser without a signed-in user. */
    browser,
    /**
     * A browser at `path` in which `key`, or the first administrator's, is signed in. console-session.test.ts holds
     * the form.
     */
    signedIn: async (path: string, { key = service.api_key, ...looking }: Looking & { key?: string } = {}) => {
      const { context, page, ...opened } = await browser(looking);
      const body = { data: { api_key: key }, headers: { [CONSOLE_HEADER]: 'console' } };
      await context.request.post('/console/session', body);
      await page.goto(path);
      await page.locator('#main').waitFor();
      return { context, page, ...opened };
    },
  };
}
export type Console = Awaited<ReturnType<typeof startConsole>>;

const UNDO_MS = 10_000;

/** Loads the page again so that notices with "Undo" stay: whether a test is in time is no matter of this machine. */
export async function keepUndo(page: Page): Promise<void> {
  await page.addInitScript(`{
    const start = window.setTimeout;
    window.setTimeout = (run, after, ...rest) => (after === ${UNDO_MS} ? 0 : start(run, after, ...rest));
  }`);
  await page.reload();
  await page.locator('#main').waitFor();
}

export const undoOf = (page: Page, text: string) =>
  page.locator('.mantine-Notification-root', { hasText: text }).getByRole('button', { name: 'Undo' });

/** Waits for a notification, and closes it: beside a later one with the same text, neither could be told from the other. */
export async function noticed(page: Page, text: string): Promise<void> {
  const notice = page.locator('.mantine-Notification-root', { hasText: text });
  await notice.waitFor();
  await notice.locator('.mantine-Notification-closeButton').click();
  await notice.waitFor({ state: 'detached' });
}
