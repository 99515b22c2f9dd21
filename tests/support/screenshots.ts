import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';

const FOLDER = process.env.CONSOLE_PICTURES;

/** A picture of the whole page for a person to look at. Only if `CONSOLE_PICTURES` names a folder. */
export async function shoot(page: Page, name: string): Promise<void> {
  if (!FOLDER) return;
  mkdirSync(FOLDER, { recursive: true });
  await page.screenshot({ path: join(FOLDER, `${name}.png`), fullPage: true });
}
