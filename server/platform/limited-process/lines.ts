/** The lines of a stream of UTF-8 text. */
export async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const parts: string[] = [];
  for await (const piece of stream) {
    const [first = '', ...more] = decoder.decode(piece, { stream: true }).split('\n');
    parts.push(first);
    for (const next of more) {
      yield parts.splice(0).join('');
      parts.push(next);
    }
  }
}
