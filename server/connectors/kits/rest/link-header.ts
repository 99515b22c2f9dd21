const LINK = /<([^>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+\s*(?:=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*))?)*)/g;
const PARAMETER = /;\s*([\w!#$&+.^`|~*-]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?/g;

/** The links of a Link header (RFC 8288) by their relation, each with its parameters and its target as `url`. */
export function linksByRelation(header: string | null): Record<string, Record<string, string>> {
  const links: Record<string, Record<string, string>> = {};
  for (const [, target = '', parameters = ''] of header?.matchAll(LINK) ?? []) {
    const link: Record<string, string> = { url: target };
    for (const [, name = '', quoted, bare = ''] of parameters.matchAll(PARAMETER))
      link[name.toLowerCase()] = quoted ?? bare;
    links[link.rel ?? target] = link;
  }
  return links;
}

/** The target of a relation in a Link header. A link may have several relations. */
export function linkTarget(header: string | null, rel: string): string | null {
  for (const [, target = '', parameters = ''] of header?.matchAll(LINK) ?? []) {
    for (const [, name = '', quoted, bare = ''] of parameters.matchAll(PARAMETER)) {
      if (name.toLowerCase() !== 'rel') continue;
      if ((quoted ?? bare).toLowerCase().split(/\s+/).includes(rel.toLowerCase())) return target;
    }
  }
  return null;
}
