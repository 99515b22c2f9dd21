import { expect, test } from 'bun:test';
import { eq } from 'drizzle-orm';
import { printable, styleOf } from '../../client/cli/style.ts';
import { accountConnectors } from '../../db/schema/index.ts';
import { createApp } from '../../server/http/app.ts';
import { testApi } from '../support/api.ts';
import { commandLine } from '../support/cli.ts';
import { testDeps } from '../support/database.ts';
import { makerOf } from '../support/resources.ts';

const ESCAPE = '\u001b';
const HOSTILE = `${ESCAPE}]0;title\u0007${ESCAPE}[2J${ESCAPE}[31mred\u009b31m\r\u202eend`;
// oxlint-disable-next-line no-control-regex -- what must not reach a terminal
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

test('control characters are escaped as in JSON, and colours of the program itself stay', () => {
  expect(printable(HOSTILE)).not.toMatch(CONTROL);
  expect(printable('two\nlines\tand ☃ é')).toBe('two\nlines\tand ☃ é');
  expect(JSON.parse(printable(JSON.stringify({ name: HOSTILE })))).toEqual({ name: HOSTILE });
  const coloured = printable(styleOf(true)('red', HOSTILE));
  expect(coloured).toStartWith(`${ESCAPE}[31m`);
  expect(coloured).toEndWith(`${ESCAPE}[0m`);
  expect(coloured.slice(5, -4)).toBe(printable(HOSTILE));
  expect(printable(styleOf(false)('red', 'plain'))).toBe('plain');
});

test('a name with escape sequences does not reach the terminal', async () => {
  const service = await testDeps();
  const app = createApp(service.deps).listen({ hostname: '127.0.0.1', port: 0 });
  try {
    const { id } = await makerOf(testApi(service).call).source();
    await service.deps.db.update(accountConnectors).set({ name: HOSTILE }).where(eq(accountConnectors.id, id));
    const cli = commandLine({ url: `http://127.0.0.1:${app.server?.port}`, key: service.api_key });
    for (const command of [['list'], ['get', id], ['list', '--json'], ['get', 'unknown']]) {
      const { out, err } = await cli.run(['sources', ...command]);
      expect(out + err).not.toMatch(CONTROL);
    }
    const listed = JSON.parse((await cli.run(['sources', 'list', '--json'])).out);
    expect(listed[0].name).toBe(HOSTILE);
  } finally {
    await app.stop(true);
  }
});
