import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A self-signed certificate and its key, in PEM. `name` as in `DNS:localhost` or `IP:127.0.0.1`. */
export function selfSigned(name: string): { key: string; cert: string } {
  const home = mkdtempSync(join(tmpdir(), 'data-pipelines-cert-'));
  const [key, cert] = [join(home, 'key.pem'), join(home, 'cert.pem')];
  const command =
    'openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test -addext'.split(' ');
  const made = Bun.spawnSync([...command, `subjectAltName=${name}`, '-keyout', key, '-out', cert], { stderr: 'pipe' });
  if (!made.success) throw new Error(`openssl failed: ${made.stderr.toString()}`);
  try {
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
