import type { ChangeFacts } from '../../contract/change-fields.ts';
import type { Lsn } from '../connection/lsn.ts';
import { committedFacts } from './change-rows.ts';
import type { Begin } from './pgoutput.ts';

const [ZERO, LETTER_A] = [0x30, 0x41];
const MICROS_AT = '2000-01-01 00:00:00.'.length;
const MICROS = 1_000_000;
const WORD = 2 ** 32;

/**
 * What a commit is known by, as bytes of lines. Most commits of a log have the second and the higher half of the LSN in
 * common with the one before: only the other digits are written, since the texts of transactions of one row took a
 * fourth of the worker's time.
 */
export class CommitBytes {
  readonly #time = Buffer.alloc('2000-01-01 00:00:00.000000+00'.length);
  readonly #lsn = Buffer.alloc('00000000/00000000'.length);
  #second = Number.NaN;
  #high = Number.NaN;

  set(begun: Begin): void {
    const second = Math.floor(begun.commitTime / MICROS);
    const { high, low } = wordsOf(begun.commitLsn);
    if (second !== this.#second || high !== this.#high) {
      const { _cdc_committed_at, _cdc_lsn } = committedFacts(begun);
      this.#time.write(_cdc_committed_at, 'latin1');
      this.#lsn.write(_cdc_lsn, 'latin1');
      [this.#second, this.#high] = [second, high];
      return;
    }
    let rest = begun.commitTime - second * MICROS;
    for (let at = MICROS_AT + 5; at >= MICROS_AT; at--) {
      const more = Math.floor(rest / 10);
      this.#time[at] = ZERO + rest - more * 10;
      rest = more;
    }
    for (let at = this.#lsn.length - 1, word = low; at > 8; at--, word >>>= 4) {
      const digit = word & 15;
      this.#lsn[at] = digit < 10 ? ZERO + digit : LETTER_A + digit - 10;
    }
  }

  of(fact: Exclude<keyof ChangeFacts, '_cdc_operation'>): Buffer {
    return fact === '_cdc_lsn' ? this.#lsn : this.#time;
  }
}

function wordsOf(lsn: Lsn): { high: number; low: number } {
  if (typeof lsn === 'bigint') return { high: Number(lsn >> 32n), low: Number(lsn & 0xffffffffn) };
  const high = Math.floor(lsn / WORD);
  return { high, low: lsn - high * WORD };
}
