/**
 * How a secret may be written in what a connector sends, receives or reports: as it is, URL-encoded once or twice,
 * form-encoded, JSON-escaped, HTML-escaped, in hex, and in Base64 at each of the three offsets it can have in a longer
 * text such as `user:secret`.
 */
export function secretSpellings(secret: string): string[] {
  const url = encodeURIComponent(secret);
  // Some encoders leave fewer characters as they are.
  const strict = url.replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  const urls = [url, strict].flatMap((one) => [one, encodeURIComponent(one), one.replaceAll('%20', '+')]);
  const lowerUrls = urls.map((one) => one.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()));
  const json = JSON.stringify(secret).slice(1, -1);
  const hex = Buffer.from(secret).toString('hex');
  return [
    secret,
    ...urls,
    ...lowerUrls,
    json,
    json.replaceAll('/', '\\/'),
    ...htmlSpellings(secret),
    hex,
    hex.toUpperCase(),
    ...base64Spellings(secret),
  ];
}

function htmlSpellings(secret: string): string[] {
  const named = secret
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
  return [named, named.replaceAll("'", '&#39;'), named.replaceAll("'", '&#x27;')];
}

/** The characters that are the same whatever stands around the secret: those that partly encode a neighbour are cut. */
function base64Spellings(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const shifted = [0, 1, 2].flatMap((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const start = Math.ceil((offset * 8) / 6);
    const end = Math.floor(((offset + bytes.length) * 8) / 6);
    return [text.slice(start, end)];
  });
  return [bytes.toString('base64'), ...shifted].flatMap((text) => [
    text,
    text.replaceAll('+', '-').replaceAll('/', '_'),
    encodeURIComponent(text),
  ]);
}
