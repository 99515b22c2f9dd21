import { defineSource } from '../contract/connector.ts';
import type * as work from './run-manifest.ts';
import { AirbyteManifestConfig } from './runtime/settings.ts';

/** Loaded with its first use: the components of manifests and their templates take each process 4 MB. */
const loaded = () => require('./run-manifest.ts') as typeof work;

export const airbyteManifestSource = defineSource<AirbyteManifestConfig>({
  type: 'source',
  name: 'airbyte_manifest',
  display_name: 'Airbyte manifest',
  description: 'Runs a low-code connector of Airbyte from its manifest',
  category: 'http',
  version: '1.0.0',
  release_stage: 'beta',
  auth_methods: ['none', 'api_key', 'basic', 'oauth2'],
  consent: {
    page: (parameters, request) => loaded().manifestConsent.page(parameters, request),
    complete: (ctx, parameters, answer) => loaded().manifestConsent.complete(ctx, parameters, answer),
  },
  supported_sync_modes: ['full_refresh', 'incremental'],
  pushdown: { masking: [], filters: false },
  config: AirbyteManifestConfig,
  check: (ctx) => loaded().checkManifest(ctx),
  discover: (ctx) => loaded().discoverManifest(ctx),
  read: (ctx, request) => loaded().readStream(ctx, request),
  outline: (parameters) => loaded().outlineManifest(parameters),
});
