import { describe } from 'bun:test';
import type { ConnectorContext } from '../../server/connectors/contract/connector.ts';
import { tunnelConnect } from '../../server/connector-runtime/sockets.ts';
import type { EgressRules } from '../../server/platform/net/egress-rules.ts';
import { generateSshKey } from '../../server/platform/ssh-keys.ts';
import { type Sshd, sshdMissing } from '../support/sshd.ts';
import type { TestContext } from './postgres-support.ts';

/** Skipped with a message if sshd is missing. */
export const describeTunnel = describe.skipIf(sshdMissing !== null);

export interface Through<Config> extends TestContext<Config> {
  pinned: string[];
  close(): Promise<void>;
}

/** The same context, connected through a separate tunnel with a new authorized key. */
export function through<Config>(
  sshd: Sshd,
  base: TestContext<Config>,
  more: { key?: string; host_key?: string; username?: string; rules?: Partial<EgressRules>; port?: number } = {},
): Through<Config> {
  const pinned: string[] = [];
  const made = generateSshKey('test');
  if (more.key === undefined) sshd.authorize(made.public_key);
  const { connect, close } = tunnelConnect({
    settings: {
      host: sshd.host,
      port: more.port ?? sshd.port,
      username: more.username ?? sshd.username,
      private_key: more.key ?? made.private_key,
      host_key_fingerprint: more.host_key ?? null,
    },
    rules: { allow: [], internal: true, ...more.rules },
    recorder: base.ctx.recorder,
    signal: base.ctx.signal,
    pin: async (fingerprint) => void pinned.push(fingerprint),
  });
  const ctx: ConnectorContext<Config> = { ...base.ctx, connect };
  return { ...base, ctx, pinned, close };
}
