import { z } from 'zod';
import { generateSshKey, publicKeyOf, type SshPublicKey } from '../../lib/ssh-keys.ts';
import { badRequest } from '../../lib/errors.ts';
import type { Deps } from '../../deps.ts';
import type { Ctx } from '../../procedure.ts';
import { checkFeature } from '../plan-limits.ts';
import { instant } from '../wire.ts';

export const GenerateSSHKeyResponse = z
  .object({
    public_key: z.string().meta({ description: 'A line for `authorized_keys` of the jump host.' }),
    encrypted_private_key: z.string().meta({
      description: 'Send it back in `ssh_tunnel` of a create or update. It opens in this service and account only.',
    }),
    key_type: z.literal('ed25519'),
    fingerprint: z.string(),
    created_at: instant(),
  })
  .meta({ id: 'GenerateSSHKeyResponse' });
export type GenerateSSHKeyResponse = z.infer<typeof GenerateSSHKeyResponse>;

/** Bound to the account, not to a row: there is none yet when the key is made. */
const context = (account_id: string) => `ssh_key:${account_id}`;

/**
 * Makes a key pair and keeps nothing of it. A tunnel takes no other keys, so a plan without tunnels ends here.
 * @throws ApiError 402 `feature_not_in_plan`
 */
export async function generateAccountSshKey(ctx: Ctx): Promise<GenerateSSHKeyResponse> {
  await checkFeature(ctx, 'ssh_tunnel');
  const { account_id } = ctx.principal;
  const { private_key, ...key } = generateSshKey(`dp-${account_id.slice(0, 8)}`);
  return {
    ...key,
    encrypted_private_key: ctx.deps.secrets.seal(private_key, context(account_id)),
    key_type: 'ed25519',
    created_at: ctx.deps.now().toISOString(),
  };
}

/** The private key in OpenSSH's format and its public half. Never leaves the process. @throws ApiError 400 `invalid_ssh_key` */
export function openSshKey(deps: Deps, account_id: string, blob: string): SshPublicKey & { private_key: string } {
  try {
    const private_key = deps.secrets.open(blob, context(account_id));
    return { private_key, ...publicKeyOf(private_key) };
  } catch {
    throw badRequest('invalid_ssh_key', 'encrypted_private_key was not made by this service for this account', {
      field: 'ssh_tunnel.encrypted_private_key',
    });
  }
}
