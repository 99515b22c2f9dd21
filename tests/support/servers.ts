import { startChromium } from './browser.ts';
import { stopTestServer, testServerUrl } from './postgres.ts';

/** The servers that all test processes of a run share. Each file has databases and browser profiles of its own there. */
export async function startTestServers(): Promise<{ env: Record<string, string>; stop(): Promise<void> }> {
  const [database, browser] = await Promise.all([testServerUrl('postgres'), startChromium()]);
  return {
    env: { TEST_DATABASE_URL: database, TEST_CHROMIUM_URL: browser.url },
    stop: async () => {
      await Promise.all([stopTestServer(), browser.stop()]);
    },
  };
}
