/** The format that a template produces, which decides how values are escaped. */
export type Medium = 'text' | 'html' | 'mrkdwn' | 'json';

const PLACEHOLDER = /\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,99})\s*\}\}/g;

const HTML: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escapeHtml = (value: string) => value.replaceAll(/[&<>"']/g, (character) => HTML[character]!);
/** Slack's three control characters. Without them, a value cannot become a link, mention or `<!channel>`. */
const escapeMrkdwn = (value: string) => value.replaceAll(/[&<>]/g, (character) => HTML[character]!);

/**
 * Replaces `{{ name }}` by values. There is no logic and no nesting, and placeholders in values are not expanded.
 * Unknown and absent values are empty, or `null` in JSON outside of a string.
 */
export function renderTemplate(template: string, values: Record<string, unknown>, medium: Medium): string {
  if (medium === 'json') return renderJson(template, values);
  const escape = medium === 'html' ? escapeHtml : medium === 'mrkdwn' ? escapeMrkdwn : (value: string) => value;
  return template.replaceAll(PLACEHOLDER, (_, name: string) => escape(textOf(valueOf(values, name))));
}

/** Whether a JSON template yields valid JSON for any values. */
export function isJsonTemplate(template: string): boolean {
  try {
    JSON.parse(renderJson(template, {}));
    return true;
  } catch {
    return false;
  }
}

/** Inside a JSON string, a value becomes part of the string; elsewhere it is a JSON value. */
function renderJson(template: string, values: Record<string, unknown>): string {
  let inString = false;
  let at = 0;
  let out = '';
  for (const match of template.matchAll(PLACEHOLDER)) {
    const before = template.slice(at, match.index);
    inString = endsInString(before, inString);
    const value = valueOf(values, match[1]!);
    out += before + (inString ? JSON.stringify(textOf(value)).slice(1, -1) : (JSON.stringify(value) ?? 'null'));
    at = match.index + match[0].length;
  }
  return out + template.slice(at);
}

function endsInString(text: string, inString: boolean): boolean {
  for (let at = 0; at < text.length; at += 1) {
    if (inString && text[at] === '\\') at += 1;
    else if (text[at] === '"') inString = !inString;
  }
  return inString;
}

const valueOf = (values: Record<string, unknown>, name: string) =>
  Object.hasOwn(values, name) ? (values[name] ?? null) : null;

function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string'
    ? value
    : Array.isArray(value)
      ? value.map(textOf).join(', ')
      : JSON.stringify(value);
}
