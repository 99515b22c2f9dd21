import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { type RouterOutputs, trpc } from '../../api.ts';
import { BASE_PATH } from '../../base-path.ts';
import { CopyBlock } from '../../components/copy-block.tsx';
import { QueryView } from '../../components/query-view.tsx';
import type { ParameterValues } from '../../parameter-form/parameter-values.ts';

interface ConnectorHelpProps {
  connector: RouterOutputs['connectors']['list'][number];
  /** What the form has so far. */
  values: ParameterValues;
}

/** What the connector needs in the other system, and its documentation, beside its form. */
export const ConnectorHelp = ({ connector, values }: ConnectorHelpProps) => (
  <div className="stack">
    <Rights connector={connector} values={values} />
    {connector.documentation_url !== null && (
      <a href={connector.documentation_url} target="_blank" rel="noopener noreferrer">
        Documentation of {connector.display_name}
      </a>
    )}
    <Documentation name={connector.name.startsWith('custom.') ? 'airbyte_manifest' : connector.name} />
  </div>
);

function Rights({ connector, values }: ConnectorHelpProps) {
  const secret = new Set(connector.parameters.filter((one) => one.secret).map(({ name }) => name));
  const parameters = Object.fromEntries(
    Object.entries(values).filter(([name, value]) => !secret.has(name) && value !== '' && value !== null),
  );
  const { connector_type, name: connector_name } = connector;
  const rights = useQuery(
    trpc.connectors.rights.queryOptions(
      { connector_type, connector_name, parameters },
      { staleTime: Infinity, placeholderData: (before) => before },
    ),
  );
  if (!rights.data?.statements) return null;
  return (
    <details className="fold">
      <summary>Rights that the user needs</summary>
      <CopyBlock label="Statements for an owner of the database" text={rights.data.statements} />
    </details>
  );
}

function Documentation({ name }: { name: string }) {
  const text = useQuery({
    queryKey: ['documentation', name],
    queryFn: async () => {
      const response = await fetch(`${BASE_PATH}/docs/connectors/${name}`);
      return response.ok ? response.text() : null;
    },
    staleTime: Infinity,
  });
  if (text.data === null) return null;
  return (
    <details className="fold">
      <summary>Documentation</summary>
      <QueryView query={{ ...text, data: text.data ?? undefined }}>{(html) => <Article html={html} />}</QueryView>
    </details>
  );
}

/** The content of a page of the documentation. Its links open beside the form, which keeps its input. */
function Article({ html }: { html: string }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const page = new DOMParser().parseFromString(html, 'text/html');
    const main = page.querySelector('main');
    for (const element of main?.querySelectorAll('*') ?? []) element.removeAttribute('style');
    for (const element of main?.querySelectorAll('[id]') ?? []) element.removeAttribute('id');
    for (const link of main?.querySelectorAll('a') ?? []) {
      link.target = '_blank';
      link.rel = 'noopener';
    }
    for (const block of main?.querySelectorAll('pre, table') ?? []) block.setAttribute('tabindex', '0');
    // The page of the form has its own first heading.
    main?.querySelector('h1')?.remove();
    place.current?.replaceChildren(...(main?.childNodes ?? []));
  }, [html]);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div ref={place} className="article" tabIndex={0} role="region" aria-label="Documentation of the connector" />
  );
}
