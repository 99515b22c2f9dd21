import { readFile } from 'node:fs/promises';
import type { ApiClient } from '../../api.ts';
import type { Cli } from '../context.ts';
import { CommandError, UsageError } from '../exit.ts';
import { pick, pickWhole } from '../find.ts';
import { readText } from '../read-document.ts';
import { showThing, table } from '../table.ts';
import { requireConfirmation } from './session.ts';

type CustomConnector = Awaited<ReturnType<ApiClient['custom_connectors']['get']['query']>>;
type Preview = Awaited<ReturnType<ApiClient['custom_connectors']['preview']['mutate']>>;

export interface Describing {
  json: boolean;
  components?: string;
  displayName?: string;
  description?: string;
  icon?: string;
  documentation?: string;
}

const isAddress = (place: string) => /^https?:\/\//.test(place);

/** The manifest and the components.py, each at an address or in a file. */
async function documentsOf(place: string | undefined, components: string | undefined) {
  if (place === undefined && components === undefined) return {};
  const manifest =
    place !== undefined && (isAddress(place) ? { manifest_url: place } : { manifest: await readText(place) });
  if (components === undefined) return { ...manifest };
  return {
    ...manifest,
    ...(isAddress(components) ? { components_url: components } : { components: await readText(components) }),
  };
}

const IMAGES: Record<string, string> = { png: 'png', jpg: 'jpeg', jpeg: 'jpeg', webp: 'webp', svg: 'svg+xml' };

async function shownAs({ displayName, description, icon, documentation }: Describing) {
  return {
    ...(displayName !== undefined && { display_name: displayName }),
    ...(description !== undefined && { description }),
    ...(icon !== undefined && { icon: await dataUrl(icon) }),
    ...(documentation !== undefined && { documentation_url: documentation }),
  };
}

async function dataUrl(path: string): Promise<string> {
  const type = IMAGES[path.split('.').at(-1)?.toLowerCase() ?? ''];
  if (type === undefined) throw new UsageError(`${path}: expected a PNG, JPEG, WebP or SVG image`);
  const content = await readFile(path).catch(() => {
    throw new UsageError(`File not found: ${path}`);
  });
  return `data:image/${type};base64,${content.toString('base64')}`;
}

export async function addConnector(cli: Cli, flags: Describing & { name: string }, place: string): Promise<void> {
  const documents = await documentsOf(place, flags.components);
  const api = await cli.api();
  const created = await api.custom_connectors.create.mutate({
    name: flags.name.replace(/^custom\./, ''),
    ...(await shownAs(flags)),
    ...documents,
  });
  show(cli, created, flags.json);
}

function show(cli: Cli, connector: CustomConnector, json: boolean): void {
  const { name, display_name, version, manifest_url, streams, unsupported, sources_count } = connector;
  showThing(cli, connector, {
    json,
    lines: {
      name,
      'display name': display_name,
      version: String(version),
      manifest: manifest_url ?? 'uploaded',
      streams: streams.join(', ') || 'found by requests',
      sources: String(sources_count),
      ...(unsupported.length > 0 && {
        'not supported': unsupported.map(({ place, what }) => `${place}: ${what}`).join('\n'),
      }),
    },
  });
}

type Updating = Describing & { dryRun: boolean; acceptBreaking: boolean; yes: boolean };

/** Shows what a newer manifest changes, and updates the connector once that is confirmed. */
export async function updateConnector(cli: Cli, flags: Updating, wanted: string, place?: string): Promise<void> {
  const api = await cli.api();
  const { name: connector_name } = pick(await api.custom_connectors.list.query(), wanted, 'connector');
  const documents = await documentsOf(place, flags.components);
  const shown = await shownAs(flags);
  const isOnlyShown = Object.keys(shown).length > 0 && Object.keys(documents).length === 0;
  if (isOnlyShown) {
    show(cli, await api.custom_connectors.update.mutate({ connector_name, ...shown }), flags.json);
    return;
  }
  const preview = await api.custom_connectors.preview.mutate({ connector_name, ...documents });
  if (flags.dryRun && flags.json) {
    cli.document = preview;
    return;
  }
  if (!flags.json) showPreview(cli, preview);
  if (flags.dryRun || (!preview.is_changed && Object.keys(shown).length === 0)) return;
  if (preview.sources.length > 0 && !flags.acceptBreaking) {
    const names = preview.sources.map(({ name }) => `"${name}"`).join(', ');
    throw new CommandError('failed', `The update would break ${names}. Use --accept-breaking to update nevertheless`);
  }
  await requireConfirmation(cli, { yes: flags.yes, message: `Update ${connector_name} and its sources?` });
  const changed = await api.custom_connectors.update.mutate({
    connector_name,
    ...shown,
    ...documents,
    digest: preview.digest,
    accept_breaking: flags.acceptBreaking,
  });
  show(cli, changed, flags.json);
}

function showPreview(cli: Cli, { is_changed, changes, sources, sources_count }: Preview): void {
  if (!is_changed) {
    cli.print('The manifest has not changed');
    return;
  }
  type Change = Preview['changes'][number];
  const columns = {
    change: ({ before, after, is_breaking }: Change) =>
      `${before === null ? 'added' : after === null ? 'removed' : 'changed'}${is_breaking ? ', breaking' : ''}`,
    subject: ({ subject }: Change) => subject.replace('_', ' '),
    stream: ({ stream }: Change) => stream ?? '',
    name: ({ name }: Change) => name ?? '',
    before: ({ before }: Change) => before ?? '',
    after: ({ after }: Change) => after ?? '',
  };
  cli.print(changes.length > 0 ? table(cli, changes, { columns }) : 'No stream, key, field or parameter changes');
  cli.print(`Sources that get the new manifest: ${sources_count}`);
  for (const { name, problems, needs_secrets, streams } of sources) {
    const why = [
      ...problems,
      ...(needs_secrets ? ['requests go to other places, so that its secrets have to be entered again'] : []),
      ...streams.map(({ connection_name, stream }) => `connection "${connection_name}" loads ${stream}`),
    ];
    cli.print(`${cli.style('bold', name)} would break: ${why.join('; ')}`);
  }
}

export async function removeConnector(cli: Cli, flags: { yes: boolean }, wanted: string): Promise<void> {
  const api = await cli.api();
  const { name } = pickWhole(await api.custom_connectors.list.query(), wanted, 'connector');
  await requireConfirmation(cli, { yes: flags.yes, message: `Remove the connector "${name}" from the catalog?` });
  await api.custom_connectors.delete.mutate({ connector_name: name });
  cli.print(`Deleted: ${name}`);
}
