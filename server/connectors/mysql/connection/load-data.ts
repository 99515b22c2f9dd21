import type { DriverCommand, DriverConnection, DriverPacket } from './taken-socket.ts';

const QUERY = 0x03;
/** A packet holds at most 16 MB. */
const PACKET_BYTES = 1024 * 1024;

export interface LoadResult {
  count: number;
  warnings: number;
}

/**
 * LOAD DATA LOCAL with its lines. A driver command: the driver's own takes the lines from a stream in several turns of the
 * event loop while the server waits, and copies each packet, which leaves as much garbage as there are lines.
 */
export class LoadData implements DriverCommand {
  constructor(
    private readonly text: string,
    /** Must stay as it is until the end. */
    private readonly lines: Buffer,
    private readonly done: { resolve(result: LoadResult): void; reject(error: Error): void },
  ) {}

  /** Called by the driver: first to start, later with each packet. @returns whether the command is done */
  execute(packet: DriverPacket | undefined, connection: DriverConnection): boolean {
    if (!packet) {
      connection.sequenceId = 0;
      write(connection, Buffer.concat([Buffer.from([QUERY]), Buffer.from(this.text, 'utf8')]));
      return false;
    }
    if (packet.isError()) {
      this.done.reject(packet.asError('utf8'));
      return true;
    }
    // Null: the server asks for the file. Otherwise the OK, which has no columns.
    if (packet.readLengthCodedNumber() === null) {
      this.#send(connection);
      return false;
    }
    const count = Number(packet.readLengthCodedNumber());
    packet.readLengthCodedNumber();
    packet.readInt16();
    this.done.resolve({ count, warnings: packet.readInt16() });
    return true;
  }

  /** Called by the driver when the connection breaks. */
  onResult(error: Error): void {
    this.done.reject(error);
  }

  #send(connection: DriverConnection): void {
    for (let at = 0; at < this.lines.length; at += PACKET_BYTES) {
      write(connection, this.lines.subarray(at, at + PACKET_BYTES));
    }
    write(connection, Buffer.alloc(0));
  }
}

function write(connection: DriverConnection, payload: Buffer): void {
  const header = Buffer.alloc(4);
  header.writeUIntLE(payload.length, 0, 3);
  header[3] = connection.sequenceId;
  connection.sequenceId = (connection.sequenceId + 1) % 256;
  connection.stream.write(header);
  if (payload.length > 0) connection.stream.write(payload);
}
