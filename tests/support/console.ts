import { afterAll } from 'bun:test';
import type { Config } from '../../server/platform/config.ts';
import { createApp } from '../../server/http/app.ts';
import { startWorker } from '../../server/worker/start-worker.ts';
import { testApi } from './api.ts';
import { type Looking, openBrowser, signIn, type TestBrowser } from './browser.ts';
import { testDeps } from './database.ts';

/** The whole service on a free port with a worker, for a browser to look at. */
export async function startConsole(config: Partial<Config> = {}) {
  const service = await testDeps({ role: 'worker', config });
  const app = createApp(service.deps).listen({ hostname: '127.0.0.1', port: 0 });
  const worker = await startWorker(service.deps);
  const browsers: TestBrowser[] = [];
  afterAll(async () => {
    await Promise.all(browsers.map((browser) => browser.close()));
    await app.server?.stop(true);
    await worker.stop();
  });
  const address = `http://127.0.0.1:${app.server!.port}`;
  const browser = async (looking: Looking = {}) => {
    const opened = await openBrowser(address, looking);
    browsers.push(opened);
    return opened;
  };
  return {
    service,
    api: testApi(service),
    address,
    /** A browser in which nobody is signed in. */
    browser,
    /** A browser in which `key`, or the first administrator's, is signed in. */
    signedIn: async (looking: Looking = {}, key: string = service.api_key) => {
      const opened = await browser(looking);
      await signIn(opened, key);
      return opened;
    },
  };
}
export type Console = Awaited<ReturnType<typeof startConsole>>;
