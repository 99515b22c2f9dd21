import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { freePort } from './free-port.ts';
import { until } from './until.ts';
import { watchOver } from './watchdog.ts';

/** The account that the emulator has. Its key is public. */
const ACCOUNT = 'devstoreaccount1';
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

export interface AzureServer {
  /** Settings of the connector `file` for the container `data`. */
  settings: Record<string, unknown>;
  put(name: string, body: string | Uint8Array<ArrayBuffer>): Promise<void>;
  /** A shared access signature of the account, with these permissions. */
  sas(permissions: string): string;
  close(): Promise<void>;
}

/** Microsoft's emulator of Azure Blob Storage, which checks signatures, with a container. */
export async function startAzure(): Promise<AzureServer> {
  const home = mkdtempSync('/tmp/data-pipelines-azure-');
  const port = await freePort();
  const main = new URL('../../node_modules/azurite/dist/src/blob/main.js', import.meta.url).pathname;
  const flags = ['--blobPort', String(port), '--inMemoryPersistence', '--skipApiVersionCheck', '--disableTelemetry'];
  const child = Bun.spawn([process.execPath, main, ...flags, '--silent'], {
    cwd: home,
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  watchOver(child, home);
  const base = `http://127.0.0.1:${port}/${ACCOUNT}`;
  await until(() =>
    fetch(base).then(
      () => true,
      () => false,
    ),
  );
  const send = async (path: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>) => {
    const answer = await fetch(`${base}/${path}`, { method: 'PUT', body, headers: signed(path, body, headers) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  };
  await send('data?restype=container', '', {});
  return {
    settings: { location: 'azure', bucket: 'data', storage_account: ACCOUNT, account_key: KEY, endpoint: base },
    put: (name, body) =>
      send(`data/${name.split('/').map(encodeURIComponent).join('/')}`, body, { 'x-ms-blob-type': 'BlockBlob' }),
    sas: sharedAccess,
    async close() {
      child.kill('SIGKILL');
      await child.exited;
      rmSync(home, { recursive: true, force: true });
    },
  };
}

const hmac = (text: string) => createHmac('sha256', Buffer.from(KEY, 'base64')).update(text).digest('base64');

function signed(path: string, body: string | Uint8Array, headers: Record<string, string>): Record<string, string> {
  const all: Record<string, string> = {
    ...headers,
    'x-ms-date': new Date().toUTCString(),
    'x-ms-version': '2021-12-02',
  };
  const [name = '', query] = path.split('?');
  const own = Object.keys(all)
    .toSorted()
    .map((key) => `${key}:${all[key]}\n`);
  const resource = `/${ACCOUNT}/${ACCOUNT}/${name}${query ? `\n${query.replace('=', ':')}` : ''}`;
  const length = body.length === 0 ? '' : String(Buffer.byteLength(body));
  const text = `PUT\n\n\n${length}\n\n\n\n\n\n\n\n\n${own.join('')}${resource}`;
  return { ...all, 'content-type': '', authorization: `SharedKey ${ACCOUNT}:${hmac(text)}` };
}

function sharedAccess(permissions: string): string {
  const end = new Date(Date.now() + 3_600_000).toISOString().slice(0, 19);
  const fields = { sp: permissions, ss: 'b', srt: 'sco', st: '', se: `${end}Z`, sip: '', spr: '', sv: '2020-08-04' };
  const sig = hmac(`${[ACCOUNT, ...Object.values(fields)].join('\n')}\n`);
  const given = Object.entries({ ...fields, sig }).filter(([, value]) => value !== '');
  return new URLSearchParams(given).toString();
}
