import { z } from 'zod';
import { openSshKey, sealSshKey } from '../../connector-runtime/tunnel-settings.ts';
import { badRequest } from '../../platform/errors.ts';
import { generateSshKey, publicKeyOf, type SshPublicKey } from '../../platform/ssh-keys.ts';
import type { Ctx } from '../../api/procedure.ts';
import { checkFeature } from '../access/plan-limits.ts';
import { instant } from '../../api/wire-types.ts';

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

/**
 * Makes a key pair and keeps nothing of it. A plan without tunnels has no use for one.
 * @throws ApiError 402 `feature_not_in_plan`
 */
export async function generateAccountSshKey(ctx: Ctx): Promise<GenerateSSHKeyResponse> {
  await checkFeature(ctx, 'ssh_tunnel');
  const { account_id } = ctx.principal;
  const { private_key, ...key } = generateSshKey(`dp-${account_id.slice(0, 8)}`);
  return {
    ...key,
    encrypted_private_key: sealSshKey(ctx.deps, account_id, private_key),
    key_type: 'ed25519',
    created_at: ctx.deps.now().toISOString(),
  };
}

type Caller = Pick<Ctx, 'deps' | 'principal'>;

/** What may be told of a sealed key. @throws ApiError 400 `invalid_ssh_key` */
export function describeSshKey({ deps, principal }: Caller, blob: string): SshPublicKey {
  try {
    const { public_key, fingerprint } = openSshKey(deps, principal.account_id, blob);
    return { public_key, fingerprint };
  } catch {
    throw refusal('encrypted_private_key', 'encrypted_private_key was not made by this service for this account');
  }
}

/** What a plan without tunnels does not have. @throws ApiError 402 `feature_not_in_plan` */
export async function checkOwnSshKey(ctx: Ctx, given: { private_key?: string } | null | undefined): Promise<void> {
  if (given?.private_key !== undefined) await checkFeature(ctx, 'ssh_tunnel');
}

/** Seals a key of the user's own. @throws ApiError 400 `invalid_ssh_key` */
export function sealOwnSshKey({ deps, principal }: Caller, private_key: string): string {
  try {
    publicKeyOf(private_key);
  } catch {
    throw refusal(
      'private_key',
      'private_key is no private key that can be read: PEM or OpenSSH, without a passphrase',
    );
  }
  return sealSshKey(deps, principal.account_id, private_key);
}

const refusal = (name: string, message: string) =>
  badRequest('invalid_ssh_key', message, { field: `ssh_tunnel.${name}` });
