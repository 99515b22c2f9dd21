import { afterAll } from 'bun:test';
import { SMTPServer } from 'smtp-server';

export interface ReceivedMail {
  from: string;
  to: string[];
  /** Headers and body as received. */
  raw: string;
}

export interface MailServer {
  url: string;
  mails: ReceivedMail[];
  /** Rejected recipients, by status: 4xx is temporary, 5xx permanent. */
  refuse: Map<string, number>;
}

/** A real SMTP server on a free port, with a login. Stopped after the tests of the file. */
export async function mailServer(): Promise<MailServer> {
  const mails: ReceivedMail[] = [];
  const refuse = new Map<string, number>();
  const server = new SMTPServer({
    authOptional: false,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    onAuth: ({ username, password }, _, done) =>
      username === 'mailer' && password === 'mail password' ? done(null, { user: username }) : done(new Error('No')),
    onRcptTo: ({ address }, _, done) => {
      const status = refuse.get(address);
      done(status === undefined ? null : Object.assign(new Error('not taken'), { responseCode: status }));
    },
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom ? mailFrom.address : '',
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString('utf8'),
        });
        done();
      });
    },
  });
  server.on('error', () => {});
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.server.address();
  if (address === null || typeof address === 'string') throw new Error('the mail server has no port');
  afterAll(() => new Promise<void>((closed) => server.close(() => closed())));
  return { url: `smtp://mailer:mail%20password@127.0.0.1:${address.port}`, mails, refuse };
}
