import type { ConnectorContext } from '../../contract/connector.ts';

interface Notice {
  code: string;
  /** @param count how often it was noted */
  message(count: number): string;
}

/** What a read notes again and again, and reports once with its number. */
export class Notices {
  readonly #noted = new Map<string, Notice & { count: number }>();

  /** @param id the same for what is counted together */
  note(id: string, notice: Notice): void {
    const known = this.#noted.get(id) ?? { ...notice, count: 0 };
    known.count += 1;
    this.#noted.set(id, known);
  }

  report(ctx: Pick<ConnectorContext<unknown>, 'warn'>): void {
    for (const { code, message, count } of this.#noted.values()) ctx.warn(code, message(count));
    this.#noted.clear();
  }
}
