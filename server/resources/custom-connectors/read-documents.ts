import { unstorableIn } from '../../platform/storable-text.ts';
import type { Ctx } from '../../api/procedure.ts';
import { asUpstreamError } from '../../api/upstream-error.ts';
import { runConnectorJob } from '../../connector-runtime/run-connector-job.ts';
import type { ConnectorOutline } from '../../connectors/contract/connector.ts';
import { ConfigurationError } from '../../connectors/contract/errors.ts';
import { badRequest } from '../../platform/errors.ts';
import type { CustomConnectorRow } from '../../../db/schema/index.ts';
import { type ConnectorDocuments, documentParameters } from '../access/custom-connectors.ts';
import { fetchDocument } from './fetch-document.ts';
import type { GivenDocuments } from './schema.ts';

const MAX_MANIFEST_BYTES = 4_000_000;
const MAX_COMPONENTS_BYTES = 1_000_000;
const LIMITS = { ms: 20_000, cpu_ms: 10_000 };

export interface ReadConnector extends ConnectorDocuments {
  digest: string;
  manifest_url: string | null;
  components_url: string | null;
  etag: string | null;
  outline: ConnectorOutline;
}

/**
 * The files of a connector, from the request or from their addresses, checked.
 * @param row the stored connector, whose address and further files count where the request has none
 * @returns null: the manifest at its address has not changed
 * @throws ApiError 400 `manifest_missing`, `invalid_manifest`, `unsupported_manifest` and those of `fetchDocument`
 */
export async function readConnector(
  ctx: Ctx,
  given: GivenDocuments,
  row: CustomConnectorRow | null,
): Promise<ReadConnector | null> {
  const found = given.manifest === undefined ? await fetched(ctx, given, row) : uploaded(given.manifest, given, row);
  if (found === null) return null;
  const outline = await outlineOf(ctx, found, found.manifest_url === null ? 'manifest' : 'manifest_url');
  return { ...found, outline, digest: digestOf(found) };
}

type Found = Omit<ReadConnector, 'digest' | 'outline'>;

function uploaded(manifest: string, given: GivenDocuments, row: CustomConnectorRow | null): Found {
  const { components = row?.components ?? null, files = row?.files ?? null } = given;
  return { manifest, components, files, manifest_url: null, components_url: null, etag: null };
}

async function fetched(ctx: Ctx, given: GivenDocuments, row: CustomConnectorRow | null): Promise<Found | null> {
  const { manifest_url = row?.manifest_url ?? null } = given;
  if (manifest_url === null) {
    throw badRequest('manifest_missing', 'Enter the address of a manifest, or upload one', { field: 'manifest_url' });
  }
  const { components_url = row?.components_url ?? null, files = row?.files ?? null } = given;
  const isSame = given.components === undefined && given.files === undefined && components_url === null;
  const etag = isSame && row?.manifest_url === manifest_url ? row.etag : null;
  const wanted = { url: manifest_url, field: 'manifest_url', max_bytes: MAX_MANIFEST_BYTES, etag };
  const manifest = await fetchDocument(ctx.deps, wanted);
  if (manifest === null) return null;
  const code =
    components_url === null
      ? null
      : await fetchDocument(ctx.deps, {
          url: components_url,
          field: 'components_url',
          max_bytes: MAX_COMPONENTS_BYTES,
        });
  const { components = row?.components ?? null } = given;
  return {
    manifest: manifest.text,
    components: code?.text ?? components,
    files,
    manifest_url,
    components_url,
    etag: manifest.etag,
  };
}

/** Users write the documents, so that they are read in a limited process. */
async function outlineOf(ctx: Ctx, documents: ConnectorDocuments, field: string): Promise<ConnectorOutline> {
  const parameters = documentParameters(documents);
  const job = { operation: 'outline' as const, name: 'airbyte_manifest', parameters };
  try {
    const [item] = await runConnectorJob(job, { ...LIMITS, owner: ctx.principal.account_id });
    if (!item?.outlined) throw new Error('the outline of a manifest returned nothing');
    if (unstorableIn(item.outlined) !== null) {
      // An escape in the manifest can be a character that no column holds.
      throw badRequest('invalid_manifest', 'The names of the manifest contain invalid characters', { field });
    }
    return item.outlined;
  } catch (error) {
    if (error instanceof ConfigurationError) throw badRequest(error.code, error.message, { field });
    throw asUpstreamError(error);
  }
}

function digestOf({ manifest, components, files }: ConnectorDocuments): string {
  const sorted = Object.entries(files ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return new Bun.CryptoHasher('sha256').update(JSON.stringify([manifest, components, sorted])).digest('hex');
}
