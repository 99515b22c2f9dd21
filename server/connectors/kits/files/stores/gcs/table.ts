import type { DestinationContext } from '../../settings/files.ts';
import { Bucket, type BucketAccess } from '../s3-client.ts';
import { bucketTables } from '../s3-upload.ts';
import { googleSigner, READ_WRITE } from './service-account.ts';

/**
 * Tables by the XML API, which has the multipart uploads of S3: they stay invisible until they are complete, and other
 * processes can complete or abort them. Resumable uploads of the JSON API end with their last byte.
 */
export const gcsDestinationStore = bucketTables((ctx) => {
  const { endpoint = 'https://storage.googleapis.com' } = ctx.config;
  return new Bucket(ctx, { ...ctx.config, endpoint, path_style: true }, tokenAccess(ctx));
});

function tokenAccess(ctx: DestinationContext): BucketAccess {
  const signer = googleSigner(ctx, READ_WRITE);
  let token: string | null = null;
  return {
    async sign(call) {
      token = await signer.current();
      const { method, url, headers } = call;
      const signed = await signer.sign({ method, url, headers, body: null }, token);
      return { ...call, headers: signed.headers };
    },
    renew: () => signer.renew(token),
  };
}
